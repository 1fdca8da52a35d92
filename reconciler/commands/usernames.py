"""Whom a command may make a user of, or grant something: which names of users and groups are anybody's.

Called by `kubeconfig --user` and `grant`. A name is text that the server compares as it is; what looks like one of the
system's, in other letters or with blanks, is refused like that one.
"""

from __future__ import annotations

import unicodedata

from apiserver.auth.user import BINDING_PREFIX, SERVICE_ACCOUNT_PREFIX
from apiserver.auth.workspaces import is_workspaces
from reconciler.commands.failure import Failure

LONGEST_IN_CERTIFICATE = 64
"""Characters of a common name or an organization (RFC 5280)."""
LONGEST = 253
_SYSTEM = "system:"
_BORNE = ("system:kcp:serviceaccount:", "system:cluster:", BINDING_PREFIX)
"""What workspaces call somebody who comes from another one, or who binds their exports."""
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def require_name(name: str, what: str, *, admin: bool, longest: int = LONGEST) -> None:
    """That a user or group (`what`) may be called so. `admin`: also by a name of the system's. Raises Failure."""
    fault = _fault(name, longest)
    if fault:
        raise Failure(f"{name!r} cannot be the name of a {what}: {fault}", "choose another name", 2)
    meant = unicodedata.normalize("NFKC", name).casefold().replace(" ", "")
    if is_workspaces(meant) or meant.startswith((SERVICE_ACCOUNT_PREFIX, *_BORNE)):
        hint = "for a ServiceAccount: treeplane kubeconfig --service-account NAMESPACE/NAME"
        raise Failure(f"{name!r} is what the server itself calls a workspace, or what belongs to one", hint, 2)
    if meant.startswith(_SYSTEM) and not admin:
        hint = "choose another name; or say --admin, if that is meant"
        raise Failure(f"{name!r} is one of the system's names, and may have rights everywhere", hint, 2)


def _fault(name: str, longest: int) -> str:
    if not name or not name.strip():
        return "it is empty"
    if name != name.strip():
        return "it begins or ends with a blank"
    if any(unicodedata.category(each) in _UNSEEN for each in name):
        return "it has characters that nobody sees"
    if len(name) > longest:
        return f"it has more than {longest} characters"
    return ""
