"""`treeplane target add`: rights and a token on a cluster, and the files that have a server run things there.

What is done on the cluster comes first: without it the files would name nothing. Everything may be done again, and says
what of it was there already.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from apiserver.model import clock
from apiserver.model.counts import counted
from apiserver.model.kinds import GroupResource
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FiledFile
from reconciler.commands.filing.desk import Desk
from reconciler.commands.targeting import declaredin, rights
from reconciler.commands.targeting.admincluster import AdminCluster, AppliedObject
from reconciler.commands.targeting.exportkinds import kinds_of
from reconciler.commands.targeting.usable import UsableCluster, address_notes, usable
from reconciler.layout import edit
from reconciler.layout.errors import BadFile
from reconciler.layout.place import file_name
from reconciler.layout.secrets import read_secrets
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.changeset import ChangeKind
from reconciler.syncing import kubeconfig as reading
from reconciler.syncing.errors import Unusable
from reconciler.syncing.lease import NAMESPACE
from reconciler.syncing.lifetime import Lifetime, TargetAccount, of_token

Object = dict[str, Any]

_HOURS = 8760
"""A year, for which a token is asked; many clusters give a day or less."""
_FIELD = "kubeconfig"
_KUBERNETES: Object = {"path": "root:compute", "export": "kubernetes"}
_FRESH = 0.5
"""Of its life, before which a token that stands in keys/ is left there."""


@dataclass(frozen=True, slots=True)
class TargetAsked:
    """`kubeconfig`, `context`: of the cluster's administrator. `workspace`: "" for the one that offers targets.
    `server`: another address of the cluster, "" for the kubeconfig's. `kinds`: that it is to run besides; `exports`:
    APIs, as `root:shop:databases:export`, whose kinds the files say where `kinds` does not."""

    name: str
    kubeconfig: Path
    context: str = ""
    workspace: str = ""
    labels: Mapping[str, str] | None = None
    server: str = ""
    kinds: Sequence[GroupResource] = ()
    exports: Sequence[tuple[str, str]] = ()


class TargetAdded(NamedTuple):
    """`value`: the SyncTarget as it is written, in `file`; `ends`: of the token in its Secret, None where that is not
    known. `files`: what was done on the cluster, told like files; `message`: of the commit."""

    place: WorkspaceDir
    file: str
    value: Object
    ends: Lifetime | None
    files: list[FiledFile]
    notes: list[str]
    message: list[str]


def add(desk: Desk, asked: TargetAsked, *, dry: bool) -> TargetAdded:
    """Does what is to be done on the cluster, unless it is `dry`, and puts the files on the desk. Raises Failure."""
    place = declaredin.workspace_for(desk, asked.workspace)
    kinds = asked.kinds or kinds_of(desk, asked.exports)
    cluster = AdminCluster(asked.kubeconfig, asked.context)
    found = usable(cluster.config(), asked.server)
    file, value = _declare(desk, place, asked)
    cluster.sign_in()
    wanted = rights.objects(kinds)
    done = cluster.would_apply(wanted) if dry else cluster.apply(wanted)
    kept = None if _is_new(done) else _kept(desk, place, asked.name, found)
    token, ends = kept or (("", None) if dry else _token(cluster))
    if kept is None:
        desk.keep_secret(place, _secret(asked.name, found.kubeconfig(token or "made when this is done")))
    in_git = kept is None and not desk.keys.planned()
    notes = [*_ends(ends, in_git=in_git), *address_notes(found, place.path)]
    files, message = [_told(found, each) for each in done], [f"Add the sync target {asked.name}"]
    return TargetAdded(place, file, value, ends, files, notes, message)


def secret_name(found: declaredin.InFile) -> str:
    """The Secret that a SyncTarget of the fleet names, in the namespace `default`; "" for another, or none."""
    connection = (found.manifest.value.get("spec") or {}).get("connection") or {}
    reference = connection.get("kubeconfigSecretRef") or {}
    return str(reference.get("name") or "") if reference.get("namespace", "default") == "default" else ""


def _declare(desk: Desk, place: WorkspaceDir, asked: TargetAsked) -> tuple[str, Object]:
    """The SyncTarget: a file of its own, or where it stands already; what else was said of it stays. The file, and
    what it says."""
    reference = {"namespace": "default", "name": asked.name}
    spec: Object = {"connection": {"kubeconfigSecretRef": reference}}
    if asked.exports:
        named = [{"path": path, "export": export} for path, export in asked.exports]
        spec["supportedAPIExports"] = [_KUBERNETES, *named]
    before = declaredin.there(desk, place, asked.name)
    try:
        if before is None:
            metadata: Object = {"name": asked.name, **({"labels": dict(asked.labels)} if asked.labels else {})}
            made = {"apiVersion": "workload.kcp.io/v1alpha1", "kind": "SyncTarget", "metadata": metadata, "spec": spec}
            file = f"{place.directory}/{file_name(asked.name)}.yaml"
            desk.write(file, edit.add(desk.read(file), file, made))
            return file, made
        value, file = before.manifest.value, before.file
        labels = {**(value["metadata"].get("labels") or {}), **(asked.labels or {})}
        metadata = {**value["metadata"], **({"labels": labels} if labels else {})}
        made = {**value, "metadata": metadata, "spec": {**(value.get("spec") or {}), **spec}}
        desk.write(file, edit.replace(desk.read(file) or b"", file, before.manifest.index, made))
        return file, made
    except BadFile as error:
        raise Failure(str(error), "mend the file first", 2) from error


def _secret(name: str, kubeconfig: bytes) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default"},
        "data": {_FIELD: base64.b64encode(kubeconfig).decode()},
    }


def _is_new(done: Sequence[AppliedObject]) -> bool:
    """Whether the account was made just now: a token of one that had its name before is good no more."""
    return any(each.value["kind"] == "ServiceAccount" and each.change is ChangeKind.CREATED for each in done)


def _token(cluster: AdminCluster) -> tuple[str, Lifetime | None]:
    token = cluster.token(NAMESPACE, rights.ACCOUNT, _HOURS)
    return token, of_token(token)


def _kept(desk: Desk, place: WorkspaceDir, name: str, found: UsableCluster) -> tuple[str, Lifetime | None] | None:
    """The token that stands in keys/, where that is of the same cluster and account and not half over."""
    top = desk.keys.directory
    secrets = read_secrets(top, place.path).by_workspace.get(place.path, []) if top is not None else []
    for each in secrets:
        if (each.namespace or "default", each.name) == ("default", name):
            token = _token_in(each.value, found)
            ends = of_token(token) if token else None
            ours = ends is not None and ends.account == TargetAccount(NAMESPACE, rights.ACCOUNT)
            if ends is not None and ours and time.time() < ends.begins + _FRESH * ends.life:
                return token, ends
    return None


def _token_in(secret: Object, found: UsableCluster) -> str:
    """ "" where the kubeconfig is another than would be written."""
    try:
        data = base64.b64decode((secret.get("data") or {})[_FIELD], validate=True)
        token = reading.read(data).token
    except (KeyError, ValueError, TypeError, Unusable):
        return ""
    return token if token and yaml.safe_load(data) == yaml.safe_load(found.kubeconfig(token)) else ""


def _ends(ends: Lifetime | None, *, in_git: bool) -> list[str]:
    if ends is None:
        return []
    days = ends.life / 86400
    told = counted(round(days), "day") if days >= 2 else counted(round(ends.life / 3600), "hour")
    rest = "the Secret stands in git, so no server renews it" if in_git else "the server renews it before"
    return [f"the token ends at {clock.rfc3339(ends.ends)} ({told}); {rest}"]


def _told(found: UsableCluster, each: AppliedObject) -> FiledFile:
    data = yaml.safe_dump(each.value, sort_keys=False).encode()
    return FiledFile(f"{found.server} {each.name}", each.change, data)
