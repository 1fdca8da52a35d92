"""What DELETE is asked with and what it answers."""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.endpoints import bodies
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.exchange import Exchange
from apiserver.model.errors import Cause, StatusError, bad_request, invalid
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.rest_options import BACKGROUND, FOREGROUND, ORPHAN, DeleteOptions, Outcome

_ANSWERS_OBJECT = having(lambda kind: kind.answers_deleted)
_POLICIES = (BACKGROUND, FOREGROUND, ORPHAN)


async def delete_options(exchange: Exchange) -> DeleteOptions:
    """From the body, else from the query. Raises StatusError 400, 415, 422."""
    body = await exchange.body()
    if body:
        options = bodies.read_object(body, exchange.header(b"content-type"))
    else:
        options = _queried(exchange)
    return options_of(options)


def options_of(options: dict[str, Any]) -> DeleteOptions:
    """A DeleteOptions object, read. Raises StatusError 400, 422."""
    policy, orphan, dry = options.get("propagationPolicy"), options.get("orphanDependents"), options.get("dryRun") or []
    causes = []
    if policy is not None and orphan is not None:
        why = f'Invalid value: "{policy}": orphanDependents and deletionPropagation cannot be both set'
        causes.append(Cause("FieldValueInvalid", why, "propagationPolicy"))
    if policy is not None and policy not in _POLICIES:
        why = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan", "nil"'
        causes.append(Cause("FieldValueNotSupported", why, "propagationPolicy"))
    if not isinstance(dry, list) or any(d != "All" for d in dry):
        shown = orjson.dumps(dry).decode()
        causes.append(Cause("FieldValueNotSupported", f'Unsupported value: {shown}: supported values: "All"', "dryRun"))
    if causes:
        raise invalid("DeleteOptions", "meta.k8s.io", "", causes)
    preconditions = options.get("preconditions") or {}
    if not isinstance(preconditions, dict):
        raise _wrong("preconditions", "an object")
    grace = options.get("gracePeriodSeconds")
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
        raise _wrong("gracePeriodSeconds", "an integer")
    if orphan is not None:
        if not isinstance(orphan, bool):
            raise _wrong("orphanDependents", "a boolean")
        policy = ORPHAN if orphan else BACKGROUND
    return DeleteOptions(
        bool(dry),
        str(preconditions.get("uid") or ""),
        str(preconditions.get("resourceVersion") or ""),
        policy or "",
        grace,
        orphan is False,
    )


def _queried(exchange: Exchange) -> dict[str, Any]:
    found: dict[str, Any] = {"dryRun": exchange.query.get("dryRun", [])}
    if exchange.parameter("propagationPolicy"):
        found["propagationPolicy"] = exchange.parameter("propagationPolicy")
    if exchange.parameter("orphanDependents"):
        found["orphanDependents"] = exchange.flag("orphanDependents")
    found["gracePeriodSeconds"] = exchange.number("gracePeriodSeconds")
    return found


def _wrong(field: str, what: str) -> StatusError:
    return bad_request(f'DeleteOptions in version "v1" cannot be handled as a DeleteOptions: {field} is not {what}')


async def delete_answer(asking: Asking, outcome: Outcome, options: DeleteOptions) -> None:
    """A Status naming the object that went, or the object where it is still there or its kind answers so."""
    kind = asking.kind
    asking.exchange.warnings += outcome.warnings
    whole = not kind.custom and kind.qualified in _ANSWERS_OBJECT
    if not outcome.removed or whole:
        code = 202 if options.cascading and not outcome.removed else 200
        obj = outcome.obj if outcome.removed else asking.view.told(asking.key_of(outcome.obj), outcome.obj)
        await asking.exchange.answer(code, orjson.dumps(obj))
        return
    metadata = outcome.obj["metadata"]
    details = {"name": metadata["name"], "kind": kind.resource, "uid": metadata.get("uid", "")}
    if kind.group:
        details["group"] = kind.group
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
    await asking.exchange.answer(200, orjson.dumps(status))
