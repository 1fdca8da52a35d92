"""APIService, CertificateSigningRequest, and the kinds of resource.k8s.io."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours.base import IMMUTABLE, Behaviour, Object, fill, immutable
from apiserver.schema import messages


def api_service_default(obj: Object) -> None:
    service = obj.setdefault("spec", {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


def api_service_check(obj: Object) -> list[Cause]:
    spec, causes = obj["spec"], []
    wanted = f"{spec.get('version') or ''}.{spec.get('group') or ''}"
    name = obj["metadata"].get("name") or ""
    if name != wanted:
        text = f'must be `spec.version+"."+spec.group`: "{wanted}"'
        causes.append(messages.invalid("metadata.name", name, text))
    local = spec.get("service") is None
    limits = (("groupPriorityMinimum", 20000), ("versionPriority", 1000))
    for field, limit in limits:
        value = spec.get(field) or 0
        if not 0 < value <= limit:
            causes.append(messages.invalid(f"spec.{field}", value, f"must be positive and less than {limit}"))
    if local:
        if spec.get("caBundle"):
            text = "local APIServices may not have a caBundle"
            causes.append(messages.invalid("spec.caBundle", f"{len(spec['caBundle'])} bytes", text))
        if spec.get("insecureSkipTLSVerify"):
            text = "local APIServices may not have insecureSkipTLSVerify"
            causes.append(messages.invalid("spec.insecureSkipTLSVerify", True, text))
    else:
        causes += [messages.required(f"spec.service.{f}") for f in ("namespace", "name") if not spec["service"].get(f)]
    return causes


def claim_default(obj: Object) -> None:
    _requests_default((obj.get("spec") or {}).get("devices"))


def claim_template_default(obj: Object) -> None:
    inner = (obj.get("spec") or {}).get("spec") or {}
    _requests_default(inner.get("devices"))


def _requests_default(devices: Object | None) -> None:
    for request in (devices or {}).get("requests") or ():
        exactly = request.get("exactly")
        if exactly is not None:
            _count_default(exactly)
        for each in request.get("firstAvailable") or ():
            _count_default(each)


def _count_default(request: Object) -> None:
    fill(request, allocationMode="ExactCount")
    if request["allocationMode"] == "ExactCount":
        request.setdefault("count", 1)


def claim_check(obj: Object) -> list[Cause]:
    return _devices("spec.devices", (obj.get("spec") or {}).get("devices") or {})


def claim_template_check(obj: Object) -> list[Cause]:
    inner = (obj.get("spec") or {}).get("spec") or {}
    return _devices("spec.spec.devices", inner.get("devices") or {})


def _devices(path: str, devices: Object) -> list[Cause]:
    causes: list[Cause] = []
    seen: set[str] = set()
    for index, request in enumerate(devices.get("requests") or ()):
        at, name = f"{path}.requests[{index}]", request.get("name") or ""
        if not name:
            causes.append(messages.required(f"{at}.name"))
        else:
            causes += [messages.invalid(f"{at}.name", name, m) for m in names.dns_label(name)]
            if name in seen:
                causes.append(messages.duplicate(f"{at}.name", name))
            seen.add(name)
        exactly, several = request.get("exactly"), request.get("firstAvailable")
        if exactly is None and not several:
            text = "exactly one of `exactly` or `firstAvailable` is required"
            causes.append(messages.required(at, text))
        if exactly is not None and not exactly.get("deviceClassName"):
            causes.append(messages.required(f"{at}.exactly.deviceClassName"))
    return causes


def spec_immutable(old: Object, new: Object) -> list[Cause]:
    if old.get("spec") == new.get("spec"):
        return []
    return [messages.invalid("spec", new.get("spec"), IMMUTABLE)]


def slice_update(old: Object, new: Object) -> list[Cause]:
    """Of a ResourceSlice."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    causes = [c for f in ("driver", "nodeName") for c in immutable(f"spec.{f}", before.get(f), after.get(f))]
    was, now = ((s.get("pool") or {}).get("name") for s in (before, after))
    return causes + immutable("spec.pool.name", was, now)


API_SERVICE = Behaviour(api_service_default, api_service_check)
RESOURCE_CLAIM = Behaviour(claim_default, claim_check, spec_immutable)
RESOURCE_SLICE = Behaviour(check_update=slice_update)
RESOURCE_CLAIM_TEMPLATE = Behaviour(claim_template_default, claim_template_check, spec_immutable)
