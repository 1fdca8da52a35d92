"""The answer to a request that is not allowed, in kube-apiserver's words.

Called by the endpoints when the Authorizer says no.
"""

from __future__ import annotations

from typing import Any

from apiserver.auth.user import Attributes, User
from apiserver.model.errors import StatusError, qualified


def denial(user: User, attributes: Attributes, reason: str = "") -> StatusError:
    """403 for `attributes`; `reason` (Decision.reason) follows the text where there is one."""
    why = f'User "{user.name}" cannot {_asked(attributes)}' + (f": {reason}" if reason else "")
    if attributes.path:
        return StatusError(403, "Forbidden", f"forbidden: {why}")
    subject = qualified(attributes.resource, attributes.group)
    details: dict[str, Any] = {}
    if attributes.name:
        subject = f'{subject} "{attributes.name}"'
        details["name"] = attributes.name
    if attributes.group:
        details["group"] = attributes.group
    details["kind"] = attributes.resource
    return StatusError(403, "Forbidden", f"{subject} is forbidden: {why}", details)


def _asked(attributes: Attributes) -> str:
    if attributes.path:
        return f'{attributes.verb} path "{attributes.path}"'
    where = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    return f'{attributes.verb} resource "{attributes.qualified_resource}" in API group "{attributes.group}" {where}'
