"""What an object says of who asked for it: a CertificateSigningRequest names its requester, whatever a client wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.registry.rest_options import Complete
from apiserver.registry.served import ServedKind

Object = dict[str, Any]

_SIGNED = "certificatesigningrequests.certificates.k8s.io"


def stamping(kind: ServedKind, user: Mapping[str, Any], others: Complete) -> Complete:
    """Of new objects of the kind, by whichever verb they are made: `others` and the stamp. `user`: a userInfo
    ({username, uid, groups, extra})."""
    if kind.qualified != _SIGNED or not kind.builtin:
        return others

    def complete(obj: Object) -> None:
        others(obj)
        _stamp(obj, user)

    return complete


def _stamp(obj: Object, user: Mapping[str, Any]) -> None:
    spec = obj.get("spec")
    if not isinstance(spec, dict):
        return
    for field in ("username", "uid", "groups", "extra"):
        value = user.get(field)
        if value and isinstance(value, str | Sequence | Mapping):
            spec[field] = value
        else:
            spec.pop(field, None)
