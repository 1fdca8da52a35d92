"""CustomResourceDefinition and APIResourceSchema: names, versions, schemas; and the status of an accepted CRD."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.model import conditions
from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.registry.behaviours import approvals, conversions, ofkubernetes
from apiserver.registry.behaviours.base import Behaviour, Object, immutable, one_of
from apiserver.registry.behaviours.versions import Where, check_version, schema_errors, shared
from apiserver.schema import messages

_RESERVED = "apis.kcp.io"
"""Groups that end so are the system's."""


def crd_default(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    _names_default(spec)
    conversions.default(spec)


def _names_default(spec: Object) -> None:
    found = spec.setdefault("names", {})
    kind = found.get("kind") or ""
    if kind:
        found["singular"] = found.get("singular") or kind.lower()
        found["listKind"] = found.get("listKind") or f"{kind}List"


def crd_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    group, plural = spec.get("group") or "", spec["names"].get("plural") or ""
    causes = []
    known = bool(ofkubernetes.versions_of(spec))  # no group but Kubernetes' may be without a name, or without a dot
    core = known and not group
    if obj["metadata"].get("name") != f"{plural}.{'core' if core else group}":
        text = 'must be spec.names.plural+"."+' + ('"core"' if core else "spec.group")
        causes.append(messages.invalid("metadata.name", obj["metadata"].get("name", ""), text))
    causes += [] if known else _group(group)
    causes += approvals.check(obj)
    if not spec.get("scope"):
        causes.append(messages.required("spec.scope"))
    causes += one_of("spec.scope", spec.get("scope"), ("Cluster", "Namespaced"))
    causes += conversions.check("spec.conversion", spec.get("conversion") or {})
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        causes.append(messages.invalid("spec.preserveUnknownFields", True, text))
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            causes.append(messages.required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    return causes + _names(spec["names"]) + _versions(versions, shared(versions)) + _stored(obj)


_NAME_VALIDATIONS = ["DNS1123Subdomain"]
"""How an APIResourceSchema may have the names of its objects checked. kcp knows PathSegmentName too."""


def reserved_in(new: Object, old: Object) -> list[Cause]:
    """What a CustomResourceDefinition says, and `old` did not, that is the system's to say; the messages are kcp's."""
    group, found = str(new["spec"].get("group") or ""), []
    if group.endswith(_RESERVED) and group != (old.get("spec") or {}).get("group"):
        found.append(Cause("FieldValueForbidden", f"{group} is a reserved group", "spec.group"))
    before = (old.get("metadata") or {}).get("annotations") or {}
    for key, value in (new["metadata"].get("annotations") or {}).items():
        if f".{key.partition('/')[0]}".endswith(f".{_RESERVED}") and value != before.get(key):
            text = f"{key} is a reserved annotation"
            found.append(Cause("FieldValueForbidden", text, f"metadata.annotations[{key}]"))
    return found


def resource_schema_check(obj: Object) -> list[Cause]:
    """Of an APIResourceSchema: `<prefix>.<plural>.<group|core>`."""
    spec = obj["spec"]
    suffix = f"{spec['names'].get('plural')}.{spec.get('group') or 'core'}"
    name = obj["metadata"].get("name", "")
    causes = []
    if not name.endswith(f".{suffix}"):
        text = f"must be of the form <prefix>.{suffix} (the prefix is yours; spec.names.plural and spec.group follow)"
        causes.append(messages.invalid("metadata.name", name, text))
    rule = spec.get("nameValidation")
    if rule and rule not in _NAME_VALIDATIONS:
        causes.append(messages.unsupported("spec.nameValidation", rule, _NAME_VALIDATIONS))
    return causes + _names(spec["names"]) + _versions(spec["versions"], _each_for_itself)


def _each_for_itself(index: int) -> Where:
    return lambda part: f"spec.versions[{index}].{part}"


def _group(group: str) -> list[Cause]:
    if not group:
        return [messages.required("spec.group")]
    found = [messages.invalid("spec.group", group, m) for m in names.dns_subdomain(group)]
    if not found and "." not in group:
        found.append(messages.invalid("spec.group", group, "should be a domain with at least one dot"))
    return found


def _names(found: Object) -> list[Cause]:
    causes = []
    for field in ("plural", "singular", "kind", "listKind"):
        value, path = found.get(field) or "", f"spec.names.{field}"
        if not value:
            causes.append(messages.required(path))
        elif field in ("kind", "listKind"):
            texts = names.dns_1035(value.lower())
            causes += [
                messages.invalid(path, value, f"may have mixed case, but should otherwise match: {m}") for m in texts
            ]
        else:
            causes += [messages.invalid(path, value, m) for m in names.dns_1035(value)]
    for index, short in enumerate(found.get("shortNames") or ()):
        causes += [messages.invalid(f"spec.names.shortNames[{index}]", short, m) for m in names.dns_1035(short)]
    for index, category in enumerate(found.get("categories") or ()):
        causes += [messages.invalid(f"spec.names.categories[{index}]", category, m) for m in names.dns_1035(category)]
    if found.get("kind") and found.get("kind") == found.get("listKind"):
        text = "kind and listKind may not be the same"
        causes.append(messages.invalid("spec.names.listKind", found["listKind"], text))
    return causes


def _versions(versions: list[Object], where: Callable[[int], Where]) -> list[Cause]:
    if not versions:
        return [messages.required("spec.versions", "must have at least one version")]
    found = [v.get("name") or "" for v in versions]
    causes = []
    for index, name in enumerate(found):
        causes += [messages.invalid(f"spec.versions[{index}].name", name, m) for m in names.dns_1035(name)]
        causes += check_version(index, versions[index], where(index))
    if len(set(found)) != len(found):
        causes.append(messages.invalid("spec.versions", found, "must contain unique version names"))
    if sum(bool(v.get("storage")) for v in versions) != 1:
        text = "must have exactly one version marked as storage version"
        causes.append(messages.invalid("spec.versions", found, text))
    if not any(v.get("served") for v in versions):
        causes.append(messages.invalid("spec.versions", found, "must have at least one version that is served"))
    return causes


def _stored(obj: Object) -> list[Cause]:
    """A version in which objects may still be stored has to stay."""
    known = {v.get("name") for v in obj["spec"].get("versions") or ()}
    causes = []
    for index, name in enumerate((obj.get("status") or {}).get("storedVersions") or ()):
        if name not in known:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            causes.append(messages.invalid(f"status.storedVersions[{index}]", name, text))
    return causes


def crd_update(old: Object, new: Object) -> list[Cause]:
    if not conditions.is_true((old.get("status") or {}).get("conditions"), "Established"):
        return immutable("spec.group", old["spec"].get("group"), new["spec"].get("group"))
    before, after = old["spec"], new["spec"]
    causes = immutable("spec.scope", before.get("scope"), after.get("scope"))
    causes += immutable("spec.group", before.get("group"), after.get("group"))
    for field in ("kind", "plural"):
        causes += immutable(f"spec.names.{field}", before["names"].get(field), after["names"].get(field))
    return causes


def crd_status(crd: Object, at: str = "") -> Object:
    """The status of a CRD that is served from now on, or says why it is not. `at`: when (RFC 3339), if that is not
    said later.

    Transition times of conditions that stay as they are in `crd` are kept, and so are versions that objects were stored
    in.
    """
    old = crd.get("status") or {}
    spec = crd["spec"]
    where = shared(spec["versions"])
    violations = [
        cause
        for index, version in enumerate(spec["versions"])
        if (path := where(index)("schema")) is not None
        for cause in schema_errors(path, version)
    ]
    accepted = conditions.condition("NamesAccepted", True, "NoConflicts", "no conflicts found", at=at)
    if violations:
        text = "; ".join(f"{c.field}: {c.message}" for c in violations)
        new = [
            conditions.condition("NonStructuralSchema", True, "Violations", text, at=at),
            accepted,
            conditions.condition("Established", False, "NonStructuralSchema", "the schema is not structural", at=at),
        ]
    else:
        text = "the initial names have been accepted"
        new = [accepted, conditions.condition("Established", True, "InitialNamesAccepted", text, at=at)]
    new += approvals.condition(crd, at) + ofkubernetes.told(ofkubernetes.ignored(spec), at)
    over = _WHERE_SO - {c["type"] for c in new}
    kept = [c for c in old.get("conditions") or () if c.get("type") not in over]
    storage = next((v["name"] for v in spec["versions"] if v.get("storage")), "")
    stored = list(old.get("storedVersions") or ())
    return {
        "conditions": conditions.appended(kept, new),
        "acceptedNames": dict(spec["names"]),
        "storedVersions": stored if storage in stored else [*stored, storage],
    }


_WHERE_SO = frozenset({"NonStructuralSchema", ofkubernetes.SERVED_AS_KUBERNETES})
"""Conditions that are there only while they are true."""
CRD_CONDITIONS = _WHERE_SO | {"Established", "KubernetesAPIApprovalPolicyConformant", "NamesAccepted"}
"""Those that are decided and not told."""


def crd_carry_status(old: Object, new: Object) -> None:
    """Whether it is served, and under which names, is decided and not told; the rest of the status is the client's."""
    before, told = old.get("status") or {}, new.get("status") or {}
    decided = [c for c in before.get("conditions") or () if c.get("type") in CRD_CONDITIONS]
    others = [c for c in told.get("conditions") or () if c.get("type") not in CRD_CONDITIONS]
    accepted = before.get("acceptedNames") or {"plural": "", "kind": ""}
    new["status"] = {**told, "conditions": [*decided, *others], "acceptedNames": accepted}


def _schema_default(obj: Object) -> None:
    _names_default(obj["spec"])


def _warnings(old: Object | None, new: Object) -> list[str]:  # noqa: ARG001
    found = ofkubernetes.ignored(new["spec"])
    return [found] if found else []


def _schema_update(old: Object, new: Object) -> list[Cause]:
    return immutable("spec", old.get("spec"), new.get("spec"))


API_RESOURCE_SCHEMA = Behaviour(
    _schema_default,
    resource_schema_check,
    _schema_update,
    warnings=_warnings,
    remedy="leave it as it was, add the new one under another name, and have the APIExport name that",
)
CUSTOM_RESOURCE_DEFINITION = Behaviour(
    crd_default, crd_check, crd_update, carry_status=crd_carry_status, warnings=_warnings
)
