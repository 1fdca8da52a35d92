"""Permission claims: which objects of its consumers a provider may see and change beside those of its own kinds.

An APIExport claims resources, with verbs. An APIBinding accepts or rejects each claim, by group, resource and identity
hash, with verbs and a selector of its own. What a provider is granted is what both say. Pure functions on the objects
as they are stored (v1alpha2); the reconciler tells with them what became of claims (plan/bindings), the provider's view
decides by them (endpoints/provider).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from apiserver.model.identity import base62, base62_sha224
from apiserver.model.selectors import EVERYTHING as ALL
from apiserver.model.selectors import LabelSelector, from_object
from apiserver.registry.builtins.served import storage_of

Object = dict[str, Any]

ANY_VERB = "*"
LABEL = "claimed.internal.apis.kcp.io/"
REFLEXIVE = base62(bytes([*range(10), *range(10), *range(8)]))
"""What the label says on an APIBinding that is seen by no claim."""
_EVENTS = ("", "events.k8s.io")


class Claimed(NamedTuple):
    """What claims are recognised by. Events are one resource in two groups."""

    group: str
    resource: str
    identity: str

    @staticmethod
    def of(claim: Object) -> Claimed:
        return Claimed(claim.get("group") or "", claim["resource"], claim.get("identityHash") or "")

    @property
    def storage(self) -> str:
        """The store's name of it."""
        return storage_of(*named(self.group, self.resource), self.identity)

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


def named(group: str, resource: str) -> tuple[str, str]:
    """The group and resource under which a claim on it is looked for."""
    return ("", resource) if resource == "events" and group in _EVENTS else (group, resource)


@dataclass(frozen=True, slots=True)
class ClaimGrant:
    """One claim that both accept. `verbs` may be `*`; `labels`: matchLabels of the consumer's selector, which what the
    provider writes has; `selects`: whether an object with these labels is in it."""

    claimed: Claimed
    verbs: frozenset[str]
    selector: LabelSelector
    labels: Mapping[str, str]

    def allows(self, verb: str) -> bool:
        return verb in self.verbs or ANY_VERB in self.verbs

    @property
    def picks(self) -> bool:
        """Whether it is on some objects only."""
        return bool(self.selector)

    def selects(self, labels: Mapping[str, str]) -> bool:
        return self.selector.matches(labels)


def grants(export: Object, binding: Object) -> list[ClaimGrant]:
    """What a binding of the export grants its provider, in the binding's order. The first answer to a claim counts."""
    asked = {Claimed.of(claim): claim for claim in asked_of(export)}
    found: dict[Claimed, ClaimGrant] = {}
    for claim in accepted_in(binding):
        claimed = Claimed.of(claim)
        verbs = _both(claim["verbs"], asked[claimed]["verbs"]) if claimed in asked else frozenset()
        if verbs and claimed not in found:
            selector = claim.get("selector") or {}
            labels = {} if selector.get("matchAll") else selector.get("matchLabels") or {}
            found[claimed] = ClaimGrant(claimed, verbs, _selector(orjson.dumps(selector)), labels)
    return list(found.values())


def asked_of(export: Object) -> Sequence[Object]:
    return (export.get("spec") or {}).get("permissionClaims") or ()


def accepted_in(binding: Object) -> list[Object]:
    return [c for c in (binding.get("spec") or {}).get("permissionClaims") or () if c.get("state") == "Accepted"]


def accepted_by_default(asked: Iterable[Object]) -> list[Object]:
    """What a binding accepts that a workspace has for being of its type: each claim of the export, on the objects that
    it suggests."""
    return [
        {
            "group": claim.get("group") or "",
            "resource": claim["resource"],
            "identityHash": claim.get("identityHash") or "",
            "verbs": list(claim["verbs"]),
            "selector": claim.get("defaultSelector") or {"matchAll": True},
            "state": "Accepted",
        }
        for claim in asked
    ]


def _both(some: Iterable[str], others: Iterable[str]) -> frozenset[str]:
    one, other = frozenset(some), frozenset(others)
    if ANY_VERB in one:
        return other
    return one if ANY_VERB in other else one & other


@lru_cache(1024)
def _selector(text: bytes) -> LabelSelector:
    """Who says nothing accepts nothing."""
    said = orjson.loads(text)
    if said.get("matchAll"):
        return ALL
    return from_object(said if said.get("matchLabels") or said.get("matchExpressions") else None)


# -- what became of them


@dataclass(frozen=True, slots=True)
class ClaimsAnswer:
    """What became of the claims of one binding. `applied`: the accepted ones that the export makes; `unexpected`: the
    accepted ones that it does not make; `mismatched`: those of which less or something else is accepted, in words."""

    applied: tuple[Object, ...] = ()
    unexpected: tuple[str, ...] = ()
    mismatched: tuple[str, ...] = ()


def answered(asked: Iterable[Object], binding: Object) -> ClaimsAnswer:
    """`asked`: the export's claims."""
    wanted = {Claimed.of(claim): claim for claim in asked}
    applied: list[Object] = []
    unexpected, mismatched = [], []
    for claim in sorted(accepted_in(binding), key=Claimed.of):
        claimed = Claimed.of(claim)
        if claimed not in wanted:
            text = f'unexpected/invalid claim for {claimed.resource}.{claimed.group} (identity "{claimed.identity}")'
            unexpected.append(text)
            continue
        applied.append({key: value for key, value in claim.items() if key != "state"})
        differs = _difference(claim, wanted[claimed])
        if differs:
            mismatched.append(f"{claimed.resource}.{claimed.group} ({differs})")
    return ClaimsAnswer(tuple(applied), tuple(unexpected), tuple(mismatched))


def _difference(accepted: Object, asked: Object) -> str:
    found = []
    verbs, wanted = set(accepted["verbs"]), set(asked["verbs"])
    if ANY_VERB not in verbs | wanted and verbs != wanted:
        found.append(f"verbs: accepted {_list(accepted['verbs'])}, exported {_list(asked['verbs'])}")
    suggested = asked.get("defaultSelector")
    if suggested and suggested != accepted.get("selector"):
        found.append("selector differs from defaultSelector")
    return "; ".join(found)


def _list(verbs: Iterable[str]) -> str:
    return f"[{' '.join(verbs)}]"


# -- how claimed objects are marked


def label_key(cluster: str, export: str) -> str:
    """The label that claimed objects carry for an export of a logical cluster."""
    return LABEL + base62_sha224(f"{cluster}:{export}")


@lru_cache(4096)
def label_value(claimed: Claimed) -> str:
    """What it says: a digest of the claim as kcp's programs write it."""
    said = {"group": claimed.group, "resource": claimed.resource, "verbs": None, "identityHash": claimed.identity}
    text = orjson.dumps({key: value for key, value in said.items() if value != "" or key == "resource"})
    return base62_sha224(text.decode())
