"""What an object says of who asked for it: a CertificateSigningRequest names its requester, whatever a client wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.registry.served import ServedKind

Object = dict[str, Any]

_SIGNED = "certificatesigningrequests.certificates.k8s.io"


def stamp(kind: ServedKind, obj: Object, user: Mapping[str, Any]) -> None:
    """Of a new object, in place. `user`: a userInfo ({username, uid, groups, extra})."""
    spec = obj.get("spec")
    if kind.qualified != _SIGNED or not isinstance(spec, dict):
        return
    for field in ("username", "uid", "groups", "extra"):
        value = user.get(field)
        if value and isinstance(value, str | Sequence | Mapping):
            spec[field] = value
        else:
            spec.pop(field, None)
