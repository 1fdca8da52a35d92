"""What DELETE is asked with and what it answers."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.endpoints import bodies
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.exchange import Exchange
from apiserver.model.errors import Cause, bad_request, invalid
from apiserver.registry.rest_options import DeleteOptions, Outcome

_ANSWERS_OBJECT = frozenset(
    {"serviceaccounts", "resourcequotas", "namespaces", "pods", "podtemplates", "services", "persistentvolumes",
     "persistentvolumeclaims"}
)  # fmt: skip
_ANSWERS_OBJECT_GROUPS = frozenset({"storage.k8s.io", "resource.k8s.io"})
_POLICIES = ("", "Background", "Foreground", "Orphan")


async def delete_options(exchange: Exchange) -> DeleteOptions:
    """From body and query. Dependents are always deleted in the background. Raises StatusError 400, 415, 422."""
    body = await exchange.body()
    options: dict[str, Any] = {}
    if body:
        options, _ = bodies.read_object(body, exchange.header(b"content-type"))
    policy = options.get("propagationPolicy") or exchange.parameter("propagationPolicy")
    dry = options.get("dryRun") or exchange.query.get("dryRun", [])
    causes = []
    if not isinstance(dry, list) or any(d != "All" for d in dry):
        causes.append(Cause("FieldValueNotSupported", 'Unsupported value: supported values: "All"', "dryRun"))
    if policy not in _POLICIES:
        why = f'Unsupported value: "{policy}": supported values: "Background", "Foreground", "Orphan"'
        causes.append(Cause("FieldValueNotSupported", why, "propagationPolicy"))
    if causes:
        raise invalid("DeleteOptions", "meta.k8s.io", "", causes)
    preconditions = options.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise bad_request("preconditions is not an object")
    return DeleteOptions(
        bool(dry), str(preconditions.get("uid") or ""), str(preconditions.get("resourceVersion") or "")
    )


async def delete_answer(asking: Asking, outcome: Outcome) -> None:
    """A Status naming the object that went, or the object where it is still there or its kind answers so."""
    kind = asking.kind
    whole = not kind.custom and (
        (not kind.group and kind.resource in _ANSWERS_OBJECT) or kind.group in _ANSWERS_OBJECT_GROUPS
    )
    if not outcome.removed or whole:
        await asking.exchange.answer(200, orjson.dumps(outcome.obj))
        return
    metadata = outcome.obj["metadata"]
    details = {"name": metadata["name"], "kind": kind.resource, "uid": metadata.get("uid", "")}
    if kind.group:
        details["group"] = kind.group
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    await asking.exchange.answer(200, orjson.dumps(status))
