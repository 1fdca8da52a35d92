"""What a Pod calls itself, and how long it may run: the single values of a pod's spec. Called by pods.spec_check."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Object
from apiserver.schema import messages

_LONGEST = (1 << 31) - 1
_HOSTNAME = 64
"""What Linux takes as a hostname, in bytes."""


def check(path: str, spec: Object) -> list[Cause]:
    """Errors of the spec at `path`. Source: ValidatePodSpec of Kubernetes."""
    causes = []
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds <= _LONGEST:
        text = f"must be between 1 and {_LONGEST}, inclusive"
        causes.append(messages.invalid(f"{path}.activeDeadlineSeconds", seconds, text))
    for field in ("hostname", "subdomain"):
        name = spec.get(field)
        if name:
            causes += [messages.invalid(f"{path}.{field}", name, text) for text in names.dns_label(name)]
    return causes + _override(f"{path}.hostnameOverride", spec)


def _override(path: str, spec: Object) -> list[Cause]:
    name = spec.get("hostnameOverride")
    if name is None:
        return []
    others = (field for field in ("setHostnameAsFQDN", "hostNetwork") if spec.get(field))
    causes = [messages.forbidden(path, f"may not be specified when {field} is true") for field in others]
    if len(name.encode()) > _HOSTNAME:
        causes.append(messages.too_long(path, _HOSTNAME))
    return causes + [messages.invalid(path, name, text) for text in names.dns_subdomain(name)]
