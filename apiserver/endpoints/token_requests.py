"""POST serviceaccounts/<name>/token: a TokenRequest is answered with a token, and nothing is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from apiserver.auth.accounts import Account, AccountHome, BoundObject, bound_object
from apiserver.endpoints import bodies
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.forms import answer_unstored
from apiserver.model import clock
from apiserver.model.errors import Cause, StatusError, bad_request, conflict, invalid, not_found
from apiserver.registry.builtins.catalogue import ENTRIES

Object = dict[str, Any]

GROUP, VERSION, KIND = "authentication.k8s.io", "v1", "TokenRequest"
_DEFAULT_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3600, 600, 1 << 32
_BINDABLE = {("v1", kind.kind): kind.resource for kind in ENTRIES.values() if kind.token_bound}
"""The store names of what a token may be bound to, by version and kind: all of the core group."""


async def request_token(asking: Asking) -> None:
    """201 with the token in the status. Raises StatusError 400, 404, 409, 422; 501 on a server that issues none."""
    if asking.accounts is None:
        raise StatusError(501, "NotImplemented", "this server issues no ServiceAccount tokens: it has no key for them")
    place, world = asking.place, asking.world
    obj = bodies.read_object(await asking.exchange.body(), asking.exchange.header(b"content-type"), KIND)
    _check_body(obj, place.name, place.namespace)
    spec = obj.get("spec") or {}
    seconds = _seconds(spec)
    audiences = _audiences(spec) or list(asking.accounts.issuer.audiences)
    uid = _uid_of_account(asking)
    home = AccountHome(world.realm.store, world.cluster or "", world.kinds())
    bound = _bound(home, place.namespace, place.name, spec.get("boundObjectRef"))
    account = Account(world.identity, place.namespace, place.name, uid, bound)
    token, ends = asking.accounts.issue(account, audiences, seconds)
    answer = {
        "kind": KIND,
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {"name": place.name, "namespace": place.namespace, "creationTimestamp": clock.now()},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": clock.rfc3339(ends)},
    }
    await answer_unstored(asking.exchange, 201, answer)


def _check_body(obj: Object, name: str, namespace: str) -> None:
    if obj.get("kind", KIND) != KIND or obj.get("apiVersion", f"{GROUP}/{VERSION}") != f"{GROUP}/{VERSION}":
        raise bad_request(f"the object provided is not a {KIND} of {GROUP}/{VERSION}")
    metadata = obj.get("metadata") or {}
    for field, wanted in (("name", name), ("namespace", namespace)):
        if metadata.get(field) not in (None, "", wanted):
            raise bad_request(
                f"the {field} of the object ({metadata[field]}) does not match the {field} on the URL ({wanted})"
            )


def _seconds(spec: Object) -> int:
    seconds = spec.get("expirationSeconds")
    if seconds is None:
        return _DEFAULT_SECONDS
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise bad_request("spec.expirationSeconds is not a number")
    if seconds < _LEAST_SECONDS:
        raise _refused(seconds, "may not specify a duration less than 10 minutes")
    if seconds > _MOST_SECONDS:
        raise _refused(seconds, "may not specify a duration larger than 2^32 seconds")
    return seconds


def _refused(seconds: int, why: str) -> StatusError:
    cause = Cause("FieldValueInvalid", f"Invalid value: {seconds}: {why}", "spec.expirationSeconds")
    return invalid(KIND, GROUP, "", [cause])


def _audiences(spec: Object) -> Sequence[str]:
    found = spec.get("audiences") or []
    if not isinstance(found, list) or not all(isinstance(a, str) for a in found):
        raise bad_request("spec.audiences is not a list of strings")
    return found


def _uid_of_account(asking: Asking) -> str:
    at = asking.world.realm.store.get(asking.key())
    if at is None:
        raise asking.absent()
    return str(orjson.loads(at.value)["metadata"].get("uid", ""))


def _bound(home: AccountHome, namespace: str, account: str, ref: Object | None) -> tuple[BoundObject, ...]:
    """What the token is bound to. A Pod has to run as the account."""
    if not ref:
        return ()
    kind, name = str(ref.get("kind") or ""), str(ref.get("name") or "")
    resource = _BINDABLE.get((str(ref.get("apiVersion") or ""), kind))
    if resource is None:
        raise bad_request(f"cannot bind token to object of type {ref.get('apiVersion')}, Kind={kind}")
    obj = bound_object(home, kind, namespace, name)
    if obj is None:
        raise not_found(resource, "", name)
    uid = obj["metadata"].get("uid", "")
    if ref.get("uid") not in (None, "", uid):
        why = (
            f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource, "", name, why)
    found = [BoundObject(kind, name, uid)]
    if kind == "Pod":
        pod = obj.get("spec") or {}
        if (pod.get("serviceAccountName") or "default") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod "{name}" running with different '
                "serviceaccount name."
            )
    return tuple(found)
