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
from apiserver.registry import subresources
from apiserver.registry.eviction import BUDGETS
from apiserver.registry.rest_options import IGNORE, STRICT, DeleteOptions, WriteOptions
from apiserver.registry.schemas import kubernetes_source
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
    options = write_options(asking.exchange, "create")
    return await _read(asking, "binding", ("v1",), options), options.dry_run


async def read_eviction(asking: Asking) -> DeleteOptions:
    """How to delete the Pod. Raises StatusError 400, 415, 422."""
    options = write_options(asking.exchange, "create")
    obj = await _read(asking, "eviction", ("policy/v1", "policy/v1beta1"), options)
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name") != asking.place.name:
        raise bad_request("name in URL does not match name in Eviction object")
    asked = options_of(obj.get("deleteOptions") or {})
    return replace(asked, dry_run=asked.dry_run or options.dry_run)


async def _read(asking: Asking, action: str, versions: tuple[str, ...], options: WriteOptions) -> Object:
    about = subresources.of(asking.kind, action)
    kind = about.kind[2]
    obj = bodies.read_object(await asking.exchange.body(), asking.exchange.header(b"content-type"), kind)
    given, version = obj.get("kind") or kind, obj.get("apiVersion") or versions[0]
    short = str(version).rpartition("/")[2]
    cannot = f'{given} in version "{short}" cannot be handled as a {kind}: '
    if given != kind or version not in versions:
        raise bad_request(f"{cannot}it is of {version}")
    schema = kubernetes_source(about.schema).compiled
    wrong = next(iter(schema.decode_errors(obj)), None)
    if wrong is not None:
        raise bad_request(f"{cannot}{wrong}")
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and metadata.get("namespace") not in (None, "", asking.place.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    unknown = [f'unknown field "{field}"' for field in sorted(schema.unknown(obj))]
    if unknown and options.validation == STRICT:
        raise bad_request(f"{cannot}strict decoding error: {', '.join(unknown)}")
    if options.validation != IGNORE:
        asking.exchange.warnings += unknown
    return obj


def is_bindings(kind: ServedKind) -> bool:
    return kind.qualified == BINDINGS
