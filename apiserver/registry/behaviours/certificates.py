"""CertificateSigningRequests: what of one is fixed once it stands, and who settles which conditions.

A request's spec is its requester's and never changes. The subresource approval brings conditions, `status` the
certificate and other conditions; a verdict is given through approval alone and never taken back. Who requested is
admission's, and whether the request is signed by its key is left to whoever signs it.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from apiserver.model import clock
from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import Behaviour, Object
from apiserver.schema import messages

RESOURCE = "certificatesigningrequests.certificates.k8s.io"

_VERDICTS = ("Approved", "Denied")
_FINAL = (*_VERDICTS, "Failed")
_CONDITIONS = "status.conditions"
_BOTH = "Approved and Denied conditions are mutually exclusive"
_LEAST_SECONDS = 600
_USAGES = frozenset(
    {
        "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
        "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
        "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
        "server auth", "signing", "timestamping",
    }
)  # fmt: skip
_MARK = re.compile(rb"-----(BEGIN|END) ([^\n-]*)-----")
_HEADER = re.compile(rb"^[^\n:]+:", re.MULTILINE)


def check_request(obj: Object) -> list[Cause]:
    """Errors of a new request."""
    spec = obj.get("spec") or {}
    usages, seconds = spec.get("usages") or [], spec.get("expirationSeconds")
    causes = []
    if not (blocks := _blocks(spec.get("request"))) or blocks[0][0] != b"CERTIFICATE REQUEST":
        why = "PEM block type must be CERTIFICATE REQUEST"
        causes.append(messages.invalid("spec.request", spec.get("request"), why))
    if not usages:
        causes.append(messages.required("spec.usages"))
    for i, usage in enumerate(usages):
        if usage not in _USAGES:
            causes.append(messages.unsupported(f"spec.usages[{i}]", usage, sorted(_USAGES)))
    first = {usage: i for i, usage in reversed(list(enumerate(usages)))}
    causes += [messages.duplicate(f"spec.usages[{i}]", u) for i, u in enumerate(usages) if first[u] < i]
    causes += _signer("spec.signerName", spec.get("signerName") or "")
    if isinstance(seconds, int) and seconds < _LEAST_SECONDS:
        why = f"may not specify a duration less than {_LEAST_SECONDS} seconds (10 minutes)"
        causes.append(messages.invalid("spec.expirationSeconds", seconds, why))
    return causes


def _signer(path: str, name: str) -> list[Cause]:
    domain, slash, rest = name.partition("/")
    if not name:
        return [messages.required(path)]
    if name == "kubernetes.io/legacy-unknown":
        return [messages.invalid(path, name, "the legacy signerName is not allowed via this API version")]
    if not slash or "/" in rest:
        why = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [messages.invalid(path, name, why)]
    causes = []
    for part in (domain, rest):
        wrong = next((label for label in part.split(".") if names.dns_label(label)), None)
        if wrong is not None:
            said = names.dns_label(wrong)
            causes += [messages.invalid(path, part, f'validating label "{wrong}": {text}') for text in said]
    if "." not in domain:
        why = "should be a domain with at least two segments separated by dots"
        causes.append(messages.invalid(path, domain, why))
    return causes


def check(obj: Object) -> list[Cause]:
    """Errors of the status."""
    status = obj.get("status") or {}
    causes = _check_conditions(_conditions(obj))
    if status.get("certificate") and (why := _wrong_certificate(status["certificate"])):
        causes.append(messages.invalid("status.certificate", "<certificate data>", why))
    return causes


def _check_conditions(conditions: list[Object]) -> list[Cause]:
    causes, seen = [], []
    for i, condition in enumerate(conditions):
        path, kind, value = f"{_CONDITIONS}[{i}]", condition.get("type") or "", condition.get("status") or ""
        allowed = ["True"] if kind in _FINAL else ["False", "True", "Unknown"]
        if not kind:
            causes.append(messages.required(f"{path}.type"))
        if not value:
            causes.append(messages.required(f"{path}.status"))
        elif value not in allowed:
            causes.append(messages.unsupported(f"{path}.status", value, allowed))
        if kind in _VERDICTS and any(other in seen for other in _VERDICTS if other != kind):
            causes.append(messages.invalid(_CONDITIONS, kind, _BOTH))
        if kind in seen:
            causes.append(messages.duplicate(f"{path}.type", kind))
        seen.append(kind)
    return causes


def _wrong_certificate(encoded: str) -> str:
    blocks = _blocks(encoded)
    if not blocks:
        return "must contain at least one CERTIFICATE PEM block"
    for kind, content in blocks:
        if kind != b"CERTIFICATE":
            return f"only CERTIFICATE PEM blocks are allowed, found {messages.quote(kind.decode(errors='replace'))}"
        if _HEADER.search(content):
            return "no PEM block headers are permitted"
    return ""


def _blocks(encoded: Any) -> list[tuple[bytes, bytes]]:
    """Type and content of each PEM block of a field of bytes."""
    try:
        data = base64.b64decode(encoded or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        return []
    found: list[tuple[bytes, bytes]] = []
    begun: re.Match[bytes] | None = None
    for mark in _MARK.finditer(data):  # once through, whatever stands there
        if mark[1] == b"BEGIN":
            begun = mark
        elif begun is not None and begun[2] == mark[2]:
            found.append((mark[2], data[begun.end() + 1 : mark.start()]))
            begun = None
    return found


def keep_spec(old: Object, new: Object) -> None:
    if "spec" in old:
        new["spec"] = old["spec"]


def settle_status(old: Object, new: Object) -> None:
    """Verdicts stay as they are where there are as many as before; conditions get the times that they lack."""
    conditions, before = _conditions(new), _conditions(old)
    for kind in _VERDICTS:
        there = [i for i, c in enumerate(conditions) if c.get("type") == kind]
        given = [c for c in before if c.get("type") == kind]
        if len(there) == len(given):
            for i, condition in zip(there, given, strict=True):
                conditions[i] = condition
    _date(conditions, before)


def settle_approval(old: Object, new: Object) -> None:
    """Conditions get the times that they lack."""
    _date(_conditions(new), _conditions(old))


def _date(conditions: list[Object], before: list[Object]) -> None:
    now = clock.now()
    for condition in conditions:
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        if not condition.get("lastTransitionTime"):
            same = (c for c in before if all(c.get(f) == condition.get(f) for f in ("type", "status")))
            last = next((c["lastTransitionTime"] for c in same if c.get("lastTransitionTime")), now)
            condition["lastTransitionTime"] = last


def check_approval(old: Object, new: Object) -> list[Cause]:
    causes = []
    for kind in _FINAL:
        if len(_of(new, kind)) < len(_of(old, kind)):
            causes.append(messages.forbidden(_CONDITIONS, f'updates may not remove a condition of type "{kind}"'))
    return causes


def check_status(old: Object, new: Object) -> list[Cause]:
    causes = check_approval(old, new)
    for kind in _VERDICTS:
        if len(_of(new, kind)) > len(_of(old, kind)):
            causes.append(messages.forbidden(_CONDITIONS, f'updates may not add a condition of type "{kind}"'))
    before = (old.get("status") or {}).get("certificate")
    if before and before != (new.get("status") or {}).get("certificate"):
        causes.append(messages.forbidden("status.certificate", "updates may not modify existing certificate content"))
    return causes


def _conditions(obj: Object) -> list[Object]:
    found: list[Object] = (obj.get("status") or {}).get("conditions") or []
    return found


def _of(obj: Object, kind: str) -> list[Object]:
    return [c for c in _conditions(obj) if c.get("type") == kind]


CERTIFICATE_SIGNING_REQUEST = Behaviour(
    check=check,
    check_new=check_request,
    carry=keep_spec,
    carry_status=settle_status,
    check_status=check_status,
)
