"""Server-side apply: a manifest over an object, by field ownership. Called through ownership.py.

What a manager applies it owns. What it applied before and applies no more is removed, unless another owns it, too. A
value that another manager owns and that would change is a conflict, unless the value is the same or force moves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiserver.model.errors import Cause, StatusError, bad_request
from apiserver.schema import fieldset, last_applied, managed, typed, typed_walk
from apiserver.schema.fieldset import Fields
from apiserver.schema.managed import APPLY, UPDATE, Managed, ManagedFieldsEntry, Owner
from apiserver.schema.messages import quote
from apiserver.schema.node import Node
from apiserver.schema.reset import Reset
from apiserver.schema.versions import Comparison, Others, Pruning, alike

Json = dict[str, Any]

BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How to apply. `manager` is the field manager, `api_version` that of the request, `now` an RFC 3339 time.

    `reset`: the top-level fields that the endpoint does not let one set (`("status",)` at the main endpoint of a kind
    with a status subresource); they keep their live value and are never owned. With `subresource` "status" and no
    `reset`, that is everything but status.
    """

    manager: str
    force: bool
    api_version: str
    now: str
    subresource: str = ""
    reset: tuple[str, ...] = ()
    others: Others = alike
    """The other versions of the kind, for fields that are owned in them."""


def apply(live: Json | None, applied: Json, node: Node, options: ApplyOptions) -> Json:
    """See ownership.apply; `node` is the schema's root."""
    if (applied.get("metadata") or {}).get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    root = typed.of_object(node)
    reset = Reset.of(options.reset, options.subresource)
    _check_typed(applied, root)
    before, owners = _live_state(live, root, options)
    me = managed.owner(options.manager, APPLY, options.api_version, options.subresource)
    last = owners.get(me)
    mine = reset.filter(typed_walk.fields_of(applied, root))
    owners[me] = ManagedFieldsEntry(mine, options.api_version, last.time if last else "")
    merged = reset.restore(typed_walk.merge(before, applied, root), before)
    result = _pruned(merged, root, owners, (me, last), options.others)
    result = _with_identity(result, before)
    compared = Comparison(before, result, root, options.api_version, options.others)
    conflicts = _conflicts(compared, owners, me, reset)
    if conflicts and not options.force:
        _refuse(conflicts, last_applied.yielded(before, root, options.manager, options.api_version))
    owners = _settle(owners, me, conflicts, compared, reset)
    _stamp(owners, me, last, changed=result != before, now=options.now)
    return with_managed(last_applied.renewed(result, applied, options.manager), owners)


def _live_state(live: Json | None, root: Node, options: ApplyOptions) -> tuple[Json, Managed]:
    """The object without managedFields, and who owns what. Fields that nobody recorded get an owner of their own."""
    if live is None:
        return {}, {}
    bare = without_managed(live)
    try:
        owners = managed.decode(live.get("metadata", {}).get("managedFields"))
    except ValueError as error:
        raise StatusError(500, "InternalError", f"failed to decode managed fields: {error}") from None
    if not owners:
        fields = fieldset.difference(typed_walk.compare({}, bare, root).added, managed.NEVER_OWNED)
        who = managed.owner(BEFORE_FIRST_APPLY, UPDATE, options.api_version, options.subresource)
        fields = Reset.of(options.reset, options.subresource).filter(fields)
        if fields:
            owners[who] = ManagedFieldsEntry(fields, options.api_version, options.now)
    return bare, owners


def without_managed(obj: Json) -> Json:
    """A shallow copy whose metadata has no managedFields."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}


def with_managed(obj: Json, owners: Managed) -> Json:
    entries = managed.encode(owners)
    bare = without_managed(obj)
    return {**bare, "metadata": {**bare.get("metadata", {}), "managedFields": entries}} if entries else bare


def _with_identity(result: Json, live: Json) -> Json:
    """Never-owned metadata is the server's, whatever was applied or dropped."""
    kept = live.get("metadata", {})
    server = {k: kept[k] for k in ("uid", "creationTimestamp", "generation", "namespace", "name") if k in kept}
    return {**result, "metadata": {**result.get("metadata", {}), **server}} if server else result


# --- removal ----------------------------------------------------------------------------------------------------------


def _pruned(
    merged: Json, root: Node, owners: Managed, mine: tuple[Owner, ManagedFieldsEntry | None], others: Others
) -> Json:
    """`merged` without what this manager applied last time, applies no more, and nobody else owns. `mine`: it, and what
    it owned then."""
    me, last = mine
    if last is None:
        return merged
    now = owners[me]
    other = others(last.api_version) if last.api_version != now.api_version else None
    if other is not None:
        return Pruning(root, other, others).of(merged, last.fields, owners)
    return _without_last(merged, root, owners, last.fields, now.fields)


def _without_last(merged: Json, root: Node, owners: Managed, last: Fields, mine: Fields) -> Json:
    if not fieldset.difference(last, mine):
        return merged
    everyone: Fields = {}
    for entry in owners.values():
        everyone = fieldset.union(everyone, entry.fields)
    dropped = typed_walk.with_parents(last, root)
    all_fields = typed_walk.with_parents(typed_walk.fields_of(merged, root), root)
    # First without all that I had; then put back what anyone owns now; then what I never owned.
    kept = fieldset.union(_fields_after(merged, dropped, root), typed_walk.with_parents(everyone, root))
    owned = _fields_after(merged, fieldset.difference(all_fields, kept), root)
    gone = fieldset.intersection(fieldset.difference(all_fields, owned), dropped)
    rest: Json = typed_walk.remove(merged, gone, root)
    return rest


def _fields_after(merged: Json, removed: Fields, root: Node) -> Fields:
    rest: Json = typed_walk.remove(merged, removed, root)
    return typed_walk.with_parents(typed_walk.fields_of(rest, root), root)


# --- conflicts --------------------------------------------------------------------------------------------------------


def _conflicts(compared: Comparison, owners: Managed, me: Owner, reset: Reset) -> dict[Owner, Fields]:
    """What would change of each other manager's."""
    found = {}
    for who, entry in owners.items():
        if who != me:
            changes = compared.of(entry.api_version)
            touched = reset.filter(fieldset.union(changes.added, changes.modified))
            found[who] = fieldset.intersection(entry.fields, touched)
    return {who: fields for who, fields in found.items() if fields}


def _refuse(conflicts: dict[Owner, Fields], yielded: Fields) -> None:
    """Raises 409, unless all of it is in `yielded`."""
    left = {who: fieldset.difference(fields, yielded) for who, fields in conflicts.items()}
    left = {who: fields for who, fields in left.items() if fields}
    if left:
        raise _conflict(left)


def _settle(owners: Managed, me: Owner, conflicts: dict[Owner, Fields], compared: Comparison, reset: Reset) -> Managed:
    """Owners after the change: others lose what changed and what went."""
    out: Managed = {}
    for who, entry in owners.items():
        fields = entry.fields
        if who != me:
            removed = reset.filter(compared.of(entry.api_version).removed)
            fields = fieldset.difference(fieldset.difference(fields, conflicts.get(who, {})), removed)
        else:
            fields = fieldset.difference(fields, managed.NEVER_OWNED)
        if fields:
            out[who] = entry.owning(fields)
    return out


def _stamp(owners: Managed, me: Owner, last: ManagedFieldsEntry | None, *, changed: bool, now: str) -> None:
    """Gives my entry the time of this request, if the object or my fields changed."""
    entry = owners.get(me)
    if entry is None:
        return
    same = last is not None and not changed and entry.fields == last.fields
    owners[me] = ManagedFieldsEntry(entry.fields, entry.api_version, last.time if same and last is not None else now)


def _conflict(conflicts: dict[Owner, Fields]) -> StatusError:
    found = {_name(who): [fieldset.shown(p) for p in fieldset.paths(conflicts[who])] for who in sorted(conflicts)}
    causes = [
        Cause("FieldManagerConflict", f"conflict with {name}", path) for name, paths in found.items() for path in paths
    ]
    if len(causes) == 1:
        message = f"Apply failed with 1 conflict: {causes[0].message}: {causes[0].field}"
    else:
        lists = "\n".join(
            "\n".join([f"conflicts with {name}:", *(f"- {path}" for path in paths)]) for name, paths in found.items()
        )
        message = f"Apply failed with {len(causes)} conflicts: {lists}"
    return StatusError(409, "Conflict", message, {"causes": [c.as_json() for c in causes]})


def _name(who: Owner) -> str:
    name = quote(who.manager)
    if who.subresource:
        name = f"{name} with subresource {quote(who.subresource)}"
    return f"{name} using {who.api_version}" if who.operation == UPDATE else name


# --- what may be applied ----------------------------------------------------------------------------------------------


def _check_typed(applied: Json, root: Node) -> None:
    """Raises 500, as Kubernetes does, for fields that the schema does not declare and items without identity."""
    problems: list[str] = []
    _find_problems(applied, root, (), problems)
    if not problems:
        return
    metadata = applied.get("metadata") or {}
    group, _, version = str(applied.get("apiVersion", "")).rpartition("/")
    what = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {group}/{version}, Kind={applied.get('kind')}"
    text = problems[0] if len(problems) == 1 else "errors:\n" + "\n".join(f"  {p}" for p in problems)
    raise StatusError(500, "InternalError", f"failed to create typed patch object ({what}): {text}")


def _find_problems(value: Any, node: Node, path: tuple[str, ...], problems: list[str]) -> None:
    if typed.is_map(node, value):
        for key, item in value.items():
            child, here = typed.field(node, key), (*path, f"f:{key}")
            if child is None:
                problems.append(f"{fieldset.shown(here)}: field not declared in schema")
            else:
                _find_problems(item, child, here, problems)
    elif typed.is_list(node, value):
        _find_item_problems(value, node, path, problems)


def _find_item_problems(values: list[Any], node: Node, path: tuple[str, ...], problems: list[str]) -> None:
    seen: set[str] = set()
    for index, item in enumerate(values):
        name = typed.entry(node, item)
        if name is None:
            problems.append(f"{fieldset.shown(path)}: element {index}: {_no_identity(item, node)}")
        elif name in seen:
            problems.append(f"{fieldset.shown(path)}: duplicate entries for key {fieldset.shown((name,))}")
        else:
            seen.add(name)
            _find_problems(item, typed.item(node), (*path, name), problems)


def _no_identity(item: Any, node: Node) -> str:
    if node.list_type == "map":
        if item is None:
            return "associative list with keys may not have a null element"
        if not isinstance(item, dict):
            return "associative list with keys may not have non-map elements"
        keys = " ".join(quote(k) for k in node.map_keys)
        return (
            f"associative list with keys has an element that omits all key fields [{keys}] "
            "(and doesn't have default values for any key fields)"
        )
    sort = {dict: "associative list without keys has an element that's a map type",
            list: "not supported: associative list with lists as elements"}  # fmt: skip
    return sort.get(item.__class__, "associative list without keys has an element that's an explicit null")
