"""The names that a definition claims in its group, be it a CustomResourceDefinition or a bound APIResourceSchema.

Of two that claim one name, who has it keeps it: the other is not served until it is free. Called where definitions are
judged: with a commit (reconciler/plan/apis), in a write through the API (rest_common), and by the loop over the
definitions of a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

from apiserver.model import conditions
from apiserver.registry.builtins.served import exported_builtins, root_builtins
from apiserver.registry.kindtable import KindTable
from apiserver.registry.served import ServedKind

Object = dict[str, Any]


class NameClaim(NamedTuple):
    """`sort`: "resource" (plural, singular, short names) or "kind" (kind, list kind): names of one sort clash."""

    group: str
    sort: str
    name: str


def claims(spec: Object) -> list[NameClaim]:
    """Of the spec of a CustomResourceDefinition or an APIResourceSchema, the plural first."""
    names, group = spec["names"], spec.get("group") or ""
    resources = [names["plural"], names.get("singular") or "", *(names.get("shortNames") or ())]
    return list(_claims(group, resources, [names["kind"], names.get("listKind") or ""]))


def claims_of(kind: ServedKind) -> list[NameClaim]:
    """Of a kind that is served."""
    resources = [kind.resource, kind.singular, *kind.short_names]
    return list(_claims(kind.group, resources, [kind.kind, kind.list_kind]))


@lru_cache(8)
def claimed(builtins: KindTable) -> frozenset[NameClaim]:
    """The names of built-in kinds, which are nobody's to claim: what root alone has is seen across workspaces, where it
    shall be nobody else's."""
    return frozenset(claim for kind in (*builtins.all(), *root_builtins().all()) for claim in claims_of(kind))


@cache
def reserved() -> frozenset[NameClaim]:
    """The names of our own kinds that exports bring: nobody else's to claim in a workspace, bound there or not."""
    return frozenset(claim for kind in exported_builtins().all() for claim in claims_of(kind))


def held(kinds: KindTable) -> set[NameClaim]:
    """The names that no CustomResourceDefinition may claim where these are served: built in, bound, or what ships."""
    of_others = (k for k in kinds.all() if not k.definition and (k.builtin or ":" in k.storage))
    return {*claimed(root_builtins()), *reserved(), *(claim for kind in of_others for claim in claims_of(kind))}


def _claims(group: str, resources: Iterable[str], kinds: Iterable[str]) -> Iterator[NameClaim]:
    yield from (NameClaim(group, "resource", name) for name in dict.fromkeys(resources) if name)
    yield from (NameClaim(group, "kind", name) for name in dict.fromkeys(kinds) if name)


def refused(status: Object, clashes: Iterable[NameClaim], existing: Iterable[Object] | None, at: str = "") -> Object:
    """The status of a CustomResourceDefinition whose names others have. `status`: as it would be with them;
    `existing`: the conditions that it has."""
    text = ", ".join(f'"{claim.name}" is already in use' for claim in clashes)
    told = [
        conditions.condition("NamesAccepted", False, "NamesInUse", text, at=at),
        conditions.condition("Established", False, "NotAccepted", "not all names are accepted", at=at),
    ]
    return {**status, "conditions": conditions.appended(existing, told), "acceptedNames": {"plural": "", "kind": ""}}
