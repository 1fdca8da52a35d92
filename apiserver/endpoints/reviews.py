"""Reviews: questions about rights and identity, sent as POST and answered, never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.auth.scopes import in_scope
from apiserver.auth.user import Attributes, User
from apiserver.endpoints import bodies
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.forms import answer_unstored
from apiserver.model import clock
from apiserver.model.errors import Cause, StatusError, invalid, method_not_allowed
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.entry import Review
from apiserver.registry.rest_checks import check_identity

Object = dict[str, Any]


_DEEP = b"x-kcp-internal-deep-subjectaccessreview"
"""A header with which system:masters ask what RBAC says, whether or not the user may enter the workspace."""


async def review(asking: Asking) -> None:
    """201 with the review's status filled in. Raises StatusError 400, 404, 406, 422."""
    body = await asking.exchange.body()
    obj = bodies.read_object(body, asking.exchange.header(b"content-type"), asking.kind.kind)
    check_identity(asking.kind, obj, asking.place.namespace, "")
    entry = ENTRIES.get(asking.kind.qualified)
    if entry is None or entry.review is None:
        raise method_not_allowed()
    answer = _ANSWERS[entry.review]
    metadata = dict(obj.get("metadata") or {})
    metadata.setdefault("creationTimestamp", None)
    obj["metadata"] = metadata
    obj["status"] = answer(asking, obj.get("spec") or {}, obj)
    await answer_unstored(asking.exchange, 201, obj)


def _self_access(asking: Asking, spec: Object, _: Object) -> Object:
    return _judge(asking, asking.user, spec)


def _access(asking: Asking, spec: Object, _: Object) -> Object:
    deep = asking.user.is_master and asking.exchange.header(_DEEP).lower() == "true"
    return _judge(asking, _user(asking, spec), spec, deep=deep)


def _local_access(asking: Asking, spec: Object, _: Object) -> Object:
    if spec.get("nonResourceAttributes") is not None:
        why = "Invalid value: null: disallowed on this kind of request"
        raise _invalid(asking, why, "spec.nonResourceAttributes")
    namespace = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if namespace != asking.place.namespace:
        why = f'Invalid value: "{namespace}": must match metadata.namespace'
        raise _invalid(asking, why, "spec.resourceAttributes.namespace")
    return _judge(asking, _user(asking, spec), spec)


def _judge(asking: Asking, user: User, spec: Object, *, deep: bool = False) -> Object:
    world = asking.world
    decision = world.realm.authorizer.authorize(world.name, user, _attributes(asking, spec), deep=deep)
    found: Object = {"allowed": decision.allowed}
    if decision.reason:
        found["reason"] = decision.reason
    return found


def _attributes(asking: Asking, spec: Object) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        why = "Invalid value: null: cannot be specified in combination with resourceAttributes"
        raise _invalid(asking, why, "spec.nonResourceAttributes")
    if resource is None and path is None:
        why = "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid(asking, why, "spec.resourceAttributes")
    if path is not None:
        return Attributes(str(path.get("verb", "")), path=str(path.get("path", "")) or "/")
    resource = resource or {}
    fields = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    verb, group, version, name, subresource, namespace, one = (str(resource.get(f) or "") for f in fields)
    return Attributes(verb, group, version, name, subresource, namespace, one)


def _user(asking: Asking, spec: Object) -> User:
    """The user that a review names."""
    if not spec.get("user") and not spec.get("groups"):
        raise _invalid(asking, 'Invalid value: "": at least one of user or group must be specified', "spec.user")
    extra = {k: tuple(v) for k, v in (spec.get("extra") or {}).items()}
    return User(str(spec.get("user") or ""), tuple(spec.get("groups") or ()), str(spec.get("uid") or ""), extra)


def _rules(asking: Asking, spec: Object, _: Object) -> Object:
    namespace = str(spec.get("namespace") or "")
    if not namespace:
        raise StatusError(400, "BadRequest", "no namespace on request")
    world = asking.world
    return world.realm.authorizer.rules(world.name, asking.user, namespace).as_json()


def _self(asking: Asking, _: Object, obj: Object) -> Object:
    obj["metadata"]["creationTimestamp"] = clock.now()
    return {"userInfo": asking.user.as_json()}


def _token(asking: Asking, spec: Object, _: Object) -> Object:
    token = spec.get("token")
    if not token:
        raise _invalid(asking, "Required value: token must be specified", "spec.token")
    found = asking.review_token(str(token), [str(a) for a in spec.get("audiences") or ()])
    if found is None:
        return {"authenticated": False, "user": {}, "error": "invalid bearer token"}
    user, audiences = found
    # As it counts here: another workspace's ServiceAccount must not be taken for the local one of that name.
    return {
        "authenticated": True,
        "user": in_scope(user, asking.world.identity).as_json(),
        **({"audiences": audiences} if audiences else {}),
    }


def _invalid(asking: Asking, why: str, field: str) -> StatusError:
    reason = "FieldValueRequired" if why.startswith("Required") else "FieldValueInvalid"
    return invalid(asking.kind.kind, asking.kind.group, "", [Cause(reason, why, field)])


_ANSWERS: dict[Review, Callable[[Asking, Object, Object], Object]] = {
    Review.SELF_ACCESS: _self_access,
    Review.ACCESS: _access,
    Review.LOCAL_ACCESS: _local_access,
    Review.RULES: _rules,
    Review.SELF: _self,
    Review.TOKEN: _token,
}
