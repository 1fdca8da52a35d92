"""APIExport and APIBinding, beyond their schemas: what is offered, what is taken, and which claims can be meant.

Both are stored in v1alpha2 and checked in the version in which they are written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from apiserver.model import paths
from apiserver.model.errors import Cause
from apiserver.model.marks import BINDING_FINALIZER
from apiserver.registry.behaviours.base import Behaviour, Object, immutable, selector
from apiserver.registry.exportspec import schema_names
from apiserver.schema import messages

IDENTITIES = "kcp-system"
"""The namespace with the identity keys of a workspace's exports."""

_GROUP = "apis.kcp.io"
_SEGMENTS = 3
_CHOICE = "either one of matchAll, matchLabels, or matchExpressions must be set"


def export_behaviour(built_in: Collection[str]) -> Behaviour:
    """`built_in`: the resources, qualified (`configmaps`), that every workspace has without an identity."""

    def check(obj: Object) -> list[Cause]:
        spec = obj.get("spec") or {}
        causes = [*_resources(spec.get("resources") or ()), *_schemas(spec.get("latestResourceSchemas") or ())]
        for index, claim in enumerate(spec.get("permissionClaims") or ()):
            at = f"spec.permissionClaims[{index}]"
            causes += _identified(at, claim, built_in)
            if claim.get("defaultSelector") is not None:
                causes += _selector(f"{at}.defaultSelector", claim["defaultSelector"])
        return causes

    return Behaviour(_named_key, check)


def _named_key(export: Object) -> None:
    """The identity key is a Secret, which an export has by itself unless it names another."""
    spec, name = export.setdefault("spec", {}), export["metadata"].get("name")
    identity = spec.setdefault("identity", {})
    if not identity.get("secretRef") and name:
        identity["secretRef"] = {"namespace": IDENTITIES, "name": name}


def _resources(found: Collection[Object]) -> Iterator[Cause]:
    for index, each in enumerate(found):
        at = f"spec.resources[{index}]"
        suffix = f".{each['name']}.{each['group'] or 'core'}"
        if not each["schema"].endswith(suffix):
            yield messages.invalid(f"{at}.schema", each["schema"], f"must end in {suffix}")
        storage = each.get("storage") or {}
        if "virtual" in storage:
            text = "not supported: objects are kept in the workspaces that bind the export; say storage.crd"
            yield messages.forbidden(f"{at}.storage.virtual", text)
        elif "crd" not in storage:
            yield messages.invalid(f"{at}.storage", storage, "Exactly one of crd or virtual must be set")


def _schemas(names: Collection[str]) -> Iterator[Cause]:
    """Of v1alpha1, which has nothing but the names to tell resources by."""
    known: set[tuple[str, str]] = set()
    for index, name in enumerate(names):
        at, resource = f"spec.latestResourceSchemas[{index}]", schema_names(name)
        if name.count(".") < _SEGMENTS - 1:
            text = f"must have at least {_SEGMENTS} dot-separated segments: <prefix>.<resource>.<group>"
            yield messages.invalid(at, name, text)
        elif resource in known:
            yield messages.invalid(at, name, f"a schema of {resource} is named already: name one of them")
        known.add(resource)


def _identified(at: str, claim: Object, built_in: Collection[str]) -> Iterator[Cause]:
    group, resource = claim.get("group") or "", claim["resource"]
    qualified = f"{resource}.{group}" if group else resource
    if not claim.get("identityHash") and group != _GROUP and qualified not in built_in:
        text = "identityHash is required for API types that are not built-in"
        yield messages.invalid(f"{at}.identityHash", "", text)


def binding_check(obj: Object) -> list[Cause]:
    spec = obj["spec"]
    causes = list(_path("spec.reference.export.path", spec["reference"]["export"].get("path")))
    for index, claim in enumerate(spec.get("permissionClaims") or ()):
        at = f"spec.permissionClaims[{index}]"
        if claim.get("selector") is not None:
            causes += _selector(f"{at}.selector", claim["selector"])
        if claim.get("resourceSelector") and not claim.get("all") and claim["state"] == "Accepted":
            text = "not supported: the provider would see all objects; accept the claim in v1alpha2, with a selector"
            causes.append(messages.forbidden(f"{at}.resourceSelector", text))
    return causes


def _selector(at: str, found: Object) -> list[Cause]:
    causes = []
    if found.get("matchAll"):
        causes = [
            messages.invalid(f"{at}.{field}", found[field], f"{field} cannot be used with matchAll")
            for field in ("matchLabels", "matchExpressions")
            if found.get(field)
        ]
    elif not found.get("matchLabels") and not found.get("matchExpressions"):
        causes = [messages.required(at, _CHOICE)]
    return causes + selector(at, found)


def binding_update(old: Object, new: Object) -> list[Cause]:
    """The objects of what is bound are that export's: another one would leave them behind. What has bound nothing yet
    may be put right, other than in kcp."""
    before, after = (obj["spec"]["reference"] for obj in (old, new))
    if before == after or not (old.get("status") or {}).get("boundResources"):
        return []
    return [messages.invalid("spec.reference", after, "APIExport reference must not be changed")]


def binding_identified(binding: Object) -> None:
    """A finalizer that clients are told of (registry/boundresources) is stored when a binding is deleted, not before:
    an object may be sent back as it was read."""
    finalizers = binding["metadata"].pop("finalizers", None) or []
    kept = [each for each in finalizers if each != BINDING_FINALIZER]
    if kept:
        binding["metadata"]["finalizers"] = kept


def binding_carry(old: Object, new: Object) -> None:
    if not old["metadata"].get("deletionTimestamp"):
        binding_identified(new)


def _path(field: str, value: str | None) -> Iterator[Cause]:
    if value and not paths.is_path(value):
        yield messages.invalid(field, value, "must be a workspace path such as root:team-a:web")


def slice_check(obj: Object) -> list[Cause]:
    return list(_path("spec.export.path", obj["spec"]["export"].get("path")))


def slice_update(old: Object, new: Object) -> list[Cause]:
    return immutable("spec.export", old["spec"]["export"], new["spec"]["export"])


API_EXPORT_ENDPOINT_SLICE = Behaviour(
    check=slice_check,
    check_update=slice_update,
    remedy="leave it as it was, and add another under another name",
)
API_BINDING = Behaviour(
    carry=binding_carry,
    identified=binding_identified,
    check=binding_check,
    check_update=binding_update,
    remedy="remove the binding in one commit, and add the new one in a later one",
)
