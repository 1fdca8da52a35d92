"""Whether Kubernetes' community has approved a CustomResourceDefinition of one of its own groups, which an annotation
says. Called by definitions.py: without an answer such a definition is refused, and its status repeats the answer."""

from __future__ import annotations

from urllib.parse import urlsplit

from apiserver.model import conditions
from apiserver.model.errors import Cause
from apiserver.registry.behaviours.base import Object
from apiserver.schema import messages

ANNOTATION = "api-approved.kubernetes.io"
_CONDITION = "KubernetesAPIApprovalPolicyConformant"
_PATH = f"metadata.annotations[{ANNOTATION}]"
_OWN = ("k8s.io", "kubernetes.io")
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_WANTED = f'protected groups must have approval annotation "{ANNOTATION}"'


def check(crd: Object) -> list[Cause]:
    """Of a new definition, or of a changed one."""
    verdict = _verdict(crd)
    if verdict is None:
        return []
    _, reason, text = verdict
    if reason == "MissingAnnotation":
        return [messages.required(_PATH, text)]
    return [messages.invalid(_PATH, _value(crd), text)] if reason == "InvalidAnnotation" else []


def condition(crd: Object, at: str) -> list[conditions.Condition]:
    """What the status says of it: nothing for other groups."""
    verdict = _verdict(crd)
    if verdict is None:
        return []
    approved, reason, text = verdict
    return [conditions.condition(_CONDITION, approved, reason, text, at=at)]


def _value(crd: Object) -> str:
    return str((crd["metadata"].get("annotations") or {}).get(ANNOTATION) or "")


def _verdict(crd: Object) -> tuple[bool, str, str] | None:
    """Whether it is approved, the condition's reason, and the text."""
    group = str(crd["spec"].get("group") or "")
    if group not in _OWN and not group.endswith(tuple(f".{own}" for own in _OWN)):
        return None
    value = _value(crd)
    if not value:
        return False, "MissingAnnotation", f"{_WANTED}, {_SEE}"
    if value.startswith("unapproved"):
        return False, "UnapprovedAnnotation", f"not approved: {messages.quote(value)}"
    if _is_url(value):
        return True, "ApprovedAnnotation", f"approved in {value}"
    text = f'{_WANTED} with either a URL or a reason starting with "unapproved", {_SEE}'
    return False, "InvalidAnnotation", text


def _is_url(value: str) -> bool:
    try:
        url = urlsplit(value)
    except ValueError:
        return False
    return bool(url.scheme and url.netloc)
