"""What a behaviour is, and checks that several families need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from apiserver.model.errors import Cause
from apiserver.registry import names
from apiserver.schema import messages

Object = dict[str, Any]
IMMUTABLE = "field is immutable"


def _nothing(obj: Object) -> None:  # noqa: ARG001
    return


def carries_nothing(old: Object, new: Object) -> None:
    """The `carry` of kinds of which an update says all."""


def _no_errors(*objects: Object) -> list[Cause]:  # noqa: ARG001
    return []


def _nothing_to_say(old: Object | None, new: Object) -> list[str]:  # noqa: ARG001
    return []


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Of one kind. All get objects whose JSON types are right.

    `default` fills in, in place, and doing it twice is doing it once; `check` gives the errors of an object by itself;
    `check_new` further ones of an object that is new, `check_update(old, new)` those of a change. `carry(old, new)`
    comes between them and puts into an update, in place, what clients need not send again. `carry_status` and
    `check_status` are the same for a write of the status subresource. `identified` completes a new object that has its
    uid. `warnings(old, new)` is what whoever writes is told besides; `old` is None for a new object. `any_text`: fields
    at the top of which each value is a text, and nothing is made of it or asked of it but how long all are together.
    `remedy`: what to do instead of a change that `check_update` refuses, where it binds commits too; "" where git may
    replace what a client may not.
    """

    default: Callable[[Object], None] = _nothing
    check: Callable[[Object], list[Cause]] = _no_errors
    check_update: Callable[[Object, Object], list[Cause]] = _no_errors
    carry: Callable[[Object, Object], None] = carries_nothing
    identified: Callable[[Object], None] = _nothing
    check_new: Callable[[Object], list[Cause]] = _no_errors
    carry_status: Callable[[Object, Object], None] = carries_nothing
    check_status: Callable[[Object, Object], list[Cause]] = _no_errors
    warnings: Callable[[Object | None, Object], list[str]] = _nothing_to_say
    any_text: frozenset[str] = frozenset()
    remedy: str = ""


def fill(obj: Object, **values: Any) -> None:
    """Sets what is absent. (Names with other characters than Python's are set by the caller.)"""
    for key, value in values.items():
        obj.setdefault(key, value)


def at_least(path: str, value: Any, least: int = 0) -> list[Cause]:
    if isinstance(value, int) and value < least:
        return [messages.invalid(path, value, f"must be greater than or equal to {least}")]
    return []


def one_of(path: str, value: Any, allowed: tuple[str, ...]) -> list[Cause]:
    """Empty and absent values pass."""
    return [messages.unsupported(path, value, list(allowed))] if value and value not in allowed else []


def port_number(path: str, value: Any) -> list[Cause]:
    if not isinstance(value, int) or 1 <= value <= 65535:
        return []
    return [messages.invalid(path, value, "must be between 1 and 65535, inclusive")]


def not_found(path: str, value: str) -> Cause:
    return Cause("FieldValueNotFound", f"Not found: {messages.printed(value)}", path)


def labels(path: str, found: dict[str, str] | None) -> list[Cause]:
    causes = []
    for key, value in (found or {}).items():
        causes += [messages.invalid(path, key, m) for m in names.qualified_name(key)]
        causes += [messages.invalid(path, value, m) for m in names.label_value(value)]
    return causes


def selector(path: str, found: Object | None) -> list[Cause]:
    """A LabelSelector object."""
    causes = labels(f"{path}.matchLabels", (found or {}).get("matchLabels"))
    for index, e in enumerate((found or {}).get("matchExpressions") or ()):
        at = f"{path}.matchExpressions[{index}]"
        operator, values = e.get("operator", ""), e.get("values")
        if operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            causes.append(messages.invalid(f"{at}.operator", operator, "not a valid selector operator"))
        elif operator in ("In", "NotIn") and not values:
            text = "must be specified when `operator` is 'In' or 'NotIn'"
            causes.append(messages.required(f"{at}.values", text))
        elif operator in ("Exists", "DoesNotExist") and values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            causes.append(messages.forbidden(f"{at}.values", text))
        causes += [messages.invalid(f"{at}.key", e.get("key", ""), m) for m in names.qualified_name(e.get("key", ""))]
        for number, value in enumerate(values or ()):
            causes += [messages.invalid(f"{at}.values[{number}]", value, m) for m in names.label_value(value)]
    return causes


def immutable(path: str, old: Any, new: Any) -> list[Cause]:
    return [] if old == new else [messages.invalid(path, new, IMMUTABLE)]
