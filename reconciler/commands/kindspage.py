"""The tables of docs/kinds.md, made of the schemas: `python -m reconciler.commands.kindspage docs/kinds.md` writes them
anew (`make settings`), and a test compares. What stands before them is written by hand.

The same descriptions are what `kubectl explain` says of our own kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.entry import Sync
from apiserver.registry.builtins.served import (
    common_builtins,
    kubernetes_builtins,
    target_builtins,
    workspace_builtins,
)
from apiserver.registry.oldgroups import NEWER
from apiserver.registry.served import ServedKind
from reconciler.commands import madepage, schemarows
from reconciler.commands.schemarows import FieldRow
from reconciler.layout import schemas
from reconciler.plan.system import COMPUTE, EXPORT

_FILES = {"fleet": "treeplane.yaml", "workspace": "workspace.yaml"}
_COMMON = {"`apiVersion`", "`kind`", "`metadata`"}
_CONDITIONS = "`status.conditions`"
_OLDER = {new: old for old, new in NEWER.items()}


def page(text: str) -> str:
    """`text` with the tables between its marks."""
    made = (*_files(), *_own(), *_kubernetes())
    return madepage.between(text, "schemas", (f"{line}\n" for line in made))


def own_kinds() -> list[list[ServedKind]]:
    """Kinds of kcp and Treeplane, by name; of each its versions, the one in which it is stored first."""
    found = sorted((k for k in common_builtins().all() if k.custom), key=lambda k: (k.kind, not k.storage_version))
    return [list(versions) for _, versions in groupby(found, key=lambda k: k.kind)]


def _files() -> Iterator[str]:
    yield from ("## Files of the repository", "")
    for name, file in _FILES.items():
        schema = schemas.schema(name)
        yield from (f"### {file}", "", schema["description"], "")
        yield from (*madepage.table(schemarows.HEADS, schemarows.rows(schema)), "")


def _own() -> Iterator[str]:
    yield from ("## Kinds of kcp and Treeplane", "")
    heads = ("kind", "group", "versions", "scope", "served in")
    yield from (*madepage.table(heads, (_summary(versions) for versions in own_kinds())), "")
    for versions in own_kinds():
        yield from _section(versions)


def _summary(versions: list[ServedKind]) -> Iterable[str]:
    kind = versions[0]
    scope = "Namespaced" if kind.namespaced else "Cluster"
    names = ", ".join(f"`{each.version}`" for each in versions)
    return f"[{kind.kind}](#{kind.kind.lower()})", f"`{kind.group}`", names, scope, _place(kind)


def _place(kind: ServedKind) -> str:
    entry = ENTRIES[kind.qualified]
    if entry.export:
        return f"workspaces that bind the export `{entry.export}` of `{COMPUTE}`"
    return "every workspace" if entry.everywhere else "`root`"


def _section(versions: list[ServedKind]) -> Iterator[str]:
    stored = versions[0]
    yield from (f"### {stored.kind}", "", f"{stored.source.openapi['description']}{_beside(stored)}", "")
    yield from (*madepage.table(("column", "what it shows"), _columns(stored)), "")
    fields = list(_fields(stored))
    yield from (*madepage.table(schemarows.HEADS, fields), "")
    for older in versions[1:]:
        yield from _difference(older, fields)


def _beside(kind: ServedKind) -> str:
    entry = ENTRIES[kind.qualified]
    told = [f"`{name}` is short for it." for name in kind.short_names]
    if entry.by_directory:
        told.append(f"No manifest declares one: {entry.by_directory}.")
    elif entry.from_commits:
        told.append("It counts where a commit declares it; one that is only stored does nothing.")
    if kind.group in _OLDER:
        told.append(f"Its group was `{_OLDER[kind.group]}`, and requests and manifests may still say so.")
    return "".join(f" {each}" for each in told)


def _columns(kind: ServedKind) -> Iterator[tuple[str, str]]:
    for column in kind.columns:
        wide = " (`-o wide`)" if column.priority else ""
        yield f"{column.name.upper()}{wide}", column.description


def _fields(kind: ServedKind) -> Iterator[FieldRow]:
    for row in schemarows.rows(kind.source.openapi):
        if row.field == _CONDITIONS and ENTRIES[kind.qualified].conditions:
            yield row._replace(meaning=f"{row.meaning} [Which there are](conditions.md#{kind.kind.lower()}).")
        elif row.field not in _COMMON and not row.field.startswith("`metadata."):
            yield row


def _difference(older: ServedKind, fields: list[FieldRow]) -> Iterator[str]:
    """What an earlier version has otherwise."""
    found = [row for row in _fields(older) if row not in fields]
    names = {row.field for row in _fields(older)}
    gone = [row.field for row in fields if row.field not in names]
    tops = [each for each in gone if not any(each.strip("`").startswith(_below(other)) for other in gone)]
    told = f" without {', '.join(tops)}, and" if tops else ""
    yield from (f"`{older.version}` is the same,{told} with these:", "")
    yield from (*madepage.table(schemarows.HEADS, found), "")


def _below(field: str) -> tuple[str, str]:
    """How fields within a field begin."""
    return f"{field.strip('`')}.", f"{field.strip('`')}[]"


def _kubernetes() -> Iterator[str]:
    yield from ("## Kubernetes' kinds", "")
    yield from (
        "Each column adds to the one before it. What each kind does here, and with which verbs, is on the page",
        "[what is supported of the Kubernetes API](kubernetes-api.md#kinds).",
        "",
    )
    heads = (
        "version",
        "in every workspace",
        f"with a binding of the export `{EXPORT}` of `{COMPUTE}`",
        "with `builtins: Kubernetes`, and in embedded sync targets",
    )
    kinds = sorted((k for k in kubernetes_builtins().all() if not k.custom), key=lambda k: (k.group, k.version))
    rows = ((f"`{version}`", *_spread(list(found))) for version, found in groupby(kinds, key=lambda k: k.api_version))
    yield from (*madepage.table(heads, rows), "")


def _spread(kinds: list[ServedKind]) -> Iterable[str]:
    everywhere = [k for k in kinds if workspace_builtins().by_resource(k.group, k.version, k.resource)]
    bound = [k for k in kinds if k not in everywhere and _is_bound(k)]
    rest = [k for k in kinds if k not in everywhere and k not in bound]
    return (", ".join(sorted(k.kind for k in each)) for each in (everywhere, bound, rest))


def _is_bound(kind: ServedKind) -> bool:
    offered = target_builtins().preferred(kind.group, kind.resource)
    return ENTRIES[kind.qualified].sync is Sync.BOUND and offered is not None and offered.version == kind.version


if __name__ == "__main__":
    madepage.write(page)
