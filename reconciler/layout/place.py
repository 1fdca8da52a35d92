"""Where a manifest that no file holds yet is put: objects made through the API, one a file.

Called by the committer. File names mean nothing to the reader of a layout, so people may move these files about; an
object that has a file stays in it.

    workspaces/root/team-a/_objects/default/deployments.apps/web.yaml
    workspaces/root/team-a/_objects/_cluster/clusterroles.rbac.authorization.k8s.io/system%3Aviewer.yaml
    workspaces/root/team-a/_objects/default/configmaps/7f_/settings.yaml         where there are very many

Git writes a directory's names anew with each change of one, so those of a crowded directory are spread.
"""

from __future__ import annotations

import hashlib
import re

from reconciler.layout.level import WORKSPACE_FILES

DIRECTORY = "_objects"
"""Below a workspace's directory. No workspace can be called so, hence no child's workspace.yaml can claim what is in
it."""
_CLUSTER = "_cluster"
_ODD = re.compile(r"[^a-z0-9._-]")
"""Upper case is odd, too: some file systems do not tell it from lower case."""
_LONGEST = 200


CROWDED = 200
"""Files from which on a directory gets subdirectories."""


def folder(directory: str, resource: str, namespace: str) -> str:
    """`directory`: the workspace's; `resource`: `deployments.apps`; `namespace`: "" for a cluster-scoped object."""
    return f"{directory}/{DIRECTORY}/{namespace or _CLUSTER}/{resource}"


def place(folder: str, name: str, *, crowded: bool = False) -> str:
    """The file of an object in its `folder`. Names of subdirectories end with _, as no workspace's can."""
    spread = f"{hashlib.blake2b(name.encode(), digest_size=1).hexdigest()}_/" if crowded else ""
    return f"{folder}/{spread}{file_name(name)}.yaml"


def file_name(name: str) -> str:
    """A name that every file system takes, and that no other object of the kind gets."""
    safe = _ODD.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), name)
    if safe.startswith(".") or f"{safe}.yaml" in WORKSPACE_FILES:
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    if len(safe) <= _LONGEST:
        return safe
    return f"{safe[:_LONGEST]}-{hashlib.blake2b(name.encode(), digest_size=6).hexdigest()}"
