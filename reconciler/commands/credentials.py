"""Kubeconfigs for others: of a user, by a certificate that is signed here, or of a ServiceAccount, by a token.

Called by `kubeconfig`. A certificate takes the CA's key, so the server's machine; its key is made here and stands in
what is returned alone. A token is asked for through the API, with the caller's own rights, from any machine.
"""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from apiserver.auth.keys import Keys, KeysError
from apiserver.auth.pki import issue_unkept
from apiserver.model import clock, paths
from reconciler.commands.failure import Failure
from reconciler.commands.filing.machine import default_data_dir
from reconciler.commands.servedat import ServedAt
from reconciler.commands.usernames import LONGEST_IN_CERTIFICATE, require_name
from reconciler.plugin.errors import PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.session import CLUSTERS, Session

Entry = dict[str, Any]


class WantedUser(NamedTuple):
    """`data_dir`, `keys`: of the server; None: `.treeplane`, and keys/ in it. `server`: its URL, "" for what it served
    under last. `seconds`: how long it is to be good."""

    user: str
    groups: tuple[str, ...]
    workspace: str
    seconds: int
    admin: bool = False
    data_dir: Path | None = None
    keys: Path | None = None
    server: str = ""


class MadeKubeconfig(NamedTuple):
    """`text` holds a secret; `ends`: RFC 3339."""

    text: str
    ends: str


def of_user(wanted: WantedUser) -> MadeKubeconfig:
    """Raises Failure."""
    require_name(wanted.user, "user", admin=wanted.admin, longest=LONGEST_IN_CERTIFICATE)
    for group in wanted.groups:
        require_name(group, "group", admin=wanted.admin, longest=LONGEST_IN_CERTIFICATE)
    _require_path(wanted.workspace)
    data_dir = wanted.data_dir or default_data_dir()
    keys = wanted.keys or data_dir / "keys"
    try:
        issued = issue_unkept(keys, wanted.user, wanted.groups, timedelta(seconds=wanted.seconds))
        served = ServedAt.read(data_dir)
        authority = _authority(Keys(keys), served if served is not None and not wanted.server else None)
    except (KeysError, OSError) as error:
        hint = "a certificate is signed on the server's machine: say --data-dir or --keys of the server there"
        raise Failure(f"no certificate can be signed here: {error}", hint) from error
    except ValueError as error:
        raise Failure(f"no certificate can say this: {error}", "choose another name", 2) from error
    url = wanted.server or (served.url if served is not None else "")
    if not url:
        raise Failure(f"{data_dir} does not say how the server is reached", "say it: --server https://NAME:PORT", 2)
    user = {"client-certificate-data": _base64(issued.certificate), "client-key-data": _base64(issued.key)}
    cluster = {"server": f"{url}{CLUSTERS}{wanted.workspace}"}
    if authority:
        cluster["certificate-authority-data"] = _base64(authority)
    return MadeKubeconfig(_config(wanted.workspace, cluster, wanted.user, user), clock.rfc3339(issued.ends.timestamp()))


def _authority(keys: Keys, served: ServedAt | None) -> bytes:
    """What vouches for the server; b"": the system does. `served`: None where it is asked for under another URL."""
    if served is None or served.authority is None:
        return keys.ca.read_bytes()
    return Path(served.authority).read_bytes() if served.authority else b""


def of_service_account(account: str, workspace: str, seconds: int, kubeconfig: str) -> MadeKubeconfig:
    """`account`: NAMESPACE/NAME. `workspace`: "" for the current one. Raises Failure."""
    namespace, _, name = account.partition("/")
    if not _is_plain(namespace) or not _is_plain(name):
        raise Failure(f"{account!r} is no ServiceAccount", "give NAMESPACE/NAME, like default/builder", 2)
    if workspace:
        _require_path(workspace)
    try:
        files = KubeconfigFiles.load(kubeconfig)
        session = Session(files, "")
        where = workspace or session.path()
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        at = f"{CLUSTERS}{where}/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = session.client.send("POST", at, asked)
        if answer.status != 201:
            raise answer.refusal()
    except PluginError as error:
        raise Failure(
            str(error), "it takes a ServiceAccount that is there, and the right to create serviceaccounts/token of it"
        ) from error
    status = answer.object["status"]
    cluster = _embedded({**files.credentials().cluster, "server": session.url(where)})
    text = _config(where, cluster, f"{namespace}/{name}", {"token": status["token"]})
    return MadeKubeconfig(text, status["expirationTimestamp"])


def _require_path(path: str) -> None:
    if not paths.is_path(path):
        raise Failure(f"{path!r} is no path of a workspace", "give one like root:shop:web", 2)


def _is_plain(text: str) -> bool:
    """Whether it can be a name in a URL: the server says what else it has to be."""
    return bool(text) and all(each.isascii() and (each.isalnum() or each in "-.") for each in text) and text[0] != "."


def _embedded(cluster: Entry) -> Entry:
    """With the CA as data: the file is read elsewhere."""
    file = cluster.get("certificate-authority")
    if not file or cluster.get("certificate-authority-data"):
        return cluster
    rest = {key: value for key, value in cluster.items() if key != "certificate-authority"}
    try:
        return {**rest, "certificate-authority-data": _base64(Path(file).read_bytes())}
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", "mend the kubeconfig") from error


def _config(name: str, cluster: Entry, who: str, user: Entry) -> str:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": who, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": who}}],
        "current-context": name,
    }
    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return text


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
