"""All that is wrong now, as a server says it: for `treeplane status` with a kubeconfig.

The server is asked as the kubeconfig's user. Who may not see what is wrong with the fleet is told of the workspace that
the kubeconfig's URL names, if that is his to see. What is found on a data directory is datadirectory's.
"""

from __future__ import annotations

from apiserver.complaints.complaint import Complaints
from apiserver.model.paths import ROOT
from reconciler.commands.failure import Failure
from reconciler.plugin.client import Unreachable
from reconciler.plugin.errors import PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.session import CLUSTERS, Session


def of_server(kubeconfig: str) -> Complaints:
    """As the server says it. `kubeconfig`: "" for the usual ones. Raises Failure where it cannot be asked."""
    hint = "on the server's machine, `treeplane status --data-dir DIR` looks without asking it"
    try:
        session = Session(KubeconfigFiles.load(kubeconfig), "")
        answer = session.client.get(f"{CLUSTERS}{ROOT}/status")
        if answer.status == 403 and session.here not in ("", ROOT):
            answer = session.client.get(f"{CLUSTERS}{session.here}/status")
    except Unreachable as error:
        raise Failure(str(error), hint) from None
    except PluginError as error:
        raise Failure(str(error)) from None
    if answer.status == 403:
        raise Failure(f"nothing could be looked at: {answer.refusal()}",
                      "who may `get` the URL /status in root sees all, in a workspace what is wrong there")  # fmt: skip
    if answer.status != 200:
        raise Failure(f"nothing could be looked at: {answer.refusal()}", hint)
    try:
        return Complaints.read(answer.object)
    except (KeyError, TypeError, ValueError):
        raise Failure("the server answers what is no status: is it of this version of Treeplane?") from None
