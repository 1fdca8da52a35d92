"""POST of what is done to a Pod: bindings and evictions. Nothing of their own is stored; the answer is a Status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson

from apiserver.endpoints import bodies
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.deletes import options_of
from apiserver.endpoints.write_options import write_options
from apiserver.model.errors import bad_request, no_such_resource
from apiserver.registry.eviction import BUDGETS
from apiserver.registry.rest_options import DeleteOptions
from apiserver.registry.served import ServedKind

Object = dict[str, Any]

BINDINGS = "bindings"
ACTIONS = frozenset({"binding", "eviction"})
DONE = orjson.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def of_pods(asking: Asking) -> Asking:
    """For a request to the resource `bindings`: as if it had been the Pod's."""
    pods = asking.world.kinds().by_resource("", "v1", "pods")
    if pods is None or not asking.place.namespace:
        raise no_such_resource()
    return replace(asking, kind=pods)


def budgets_of(asking: Asking) -> Asking | None:
    """The request, as if it were about the PodDisruptionBudgets of its world."""
    kind = asking.world.kinds().preferred("policy", BUDGETS)
    return replace(asking, kind=kind) if kind is not None else None


async def read_binding(asking: Asking) -> tuple[Object, bool]:
    """The Binding and whether it is only tried. Raises StatusError 400, 415, 422."""
    return await _read(asking, "Binding", ("v1",)), write_options(asking.exchange, "create").dry_run


async def read_eviction(asking: Asking) -> DeleteOptions:
    """How to delete the Pod. Raises StatusError 400, 415, 422."""
    obj = await _read(asking, "Eviction", ("policy/v1", "policy/v1beta1"))
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != asking.place.name:
        raise bad_request("name in URL does not match name in Eviction object")
    asked = obj.get("deleteOptions") or {}
    if not isinstance(asked, dict):
        raise bad_request("deleteOptions is not an object")
    options = options_of(asked)
    return replace(options, dry_run=options.dry_run or write_options(asking.exchange, "create").dry_run)


async def _read(asking: Asking, kind: str, versions: tuple[str, ...]) -> Object:
    obj = bodies.read_object(await asking.exchange.body(), asking.exchange.header(b"content-type"))
    given, version = obj.get("kind") or kind, obj.get("apiVersion") or versions[0]
    if given != kind or version not in versions:
        short = str(version).rpartition("/")[2]
        raise bad_request(f'{given} in version "{short}" cannot be handled as a {kind}: it is of {version}')
    return obj


def is_bindings(kind: ServedKind) -> bool:
    return kind.qualified == BINDINGS
