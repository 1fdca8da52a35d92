"""Query parameters of reads, read and checked as kube-apiserver does. Pure.

What a resourceVersion asks for, by verb:

    get    unset, 0 or N → the latest object; N of the future → 504
    list   unset or 0 → the latest snapshot; N → the latest, 504 if N is of the future; N with Exact (or with a limit
           and no match rule) → the snapshot at N, 410 if the log no longer reaches back
    watch  unset or 0 → what there is as ADDED, then changes; N → changes after N, 410 as an ERROR event
"""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.endpoints.exchange import Exchange
from apiserver.model.errors import Cause, StatusError, bad_request, invalid

EXACT, NOT_OLDER = "Exact", "NotOlderThan"
_DIGITS = 100
"""Of a number that is worth reading; Python refuses very long ones."""


@dataclass(frozen=True, slots=True)
class ListOptions:
    """`revision` None: unset. `exact`: the snapshot at `revision`, else any that is not older."""

    labels: str
    fields: str
    revision: int | None
    exact: bool
    limit: int | None
    token: str


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """`timeout` in seconds. `initial`: sendInitialEvents, None if unset."""

    labels: str
    fields: str
    revision: int | None
    timeout: int | None
    bookmarks: bool
    initial: bool | None


def revision(text: str) -> int | None:
    """A resourceVersion; None if unset. Raises StatusError 400."""
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise _no_revision(text, "invalid syntax")
    if len(text) > _DIGITS or int(text) >> 64:
        raise _no_revision(text, "value out of range")
    return int(text)


def _no_revision(text: str, why: str) -> StatusError:
    field = f'resourceVersion: Invalid value: "{text}"'
    return bad_request(f'invalid resource version: {field}: strconv.ParseUint: parsing "{text}": {why}')


def _refuse(field: str, why: str, reason: str = "FieldValueForbidden") -> StatusError:
    return invalid("ListOptions", "meta.k8s.io", "", [Cause(reason, why, field)])


def _match(text: str) -> str:
    if text not in ("", EXACT, NOT_OLDER):
        raise _refuse(
            "resourceVersionMatch",
            f'Unsupported value: "{text}": supported values: "{EXACT}", "{NOT_OLDER}", ""',
            "FieldValueNotSupported",
        )
    return text


def list_options(exchange: Exchange) -> ListOptions:
    """Raises StatusError 400 or 422."""
    if not exchange.query:
        return _PLAIN
    at = revision(exchange.parameter("resourceVersion"))
    match = _match(exchange.parameter("resourceVersionMatch"))
    token = exchange.parameter("continue")
    limit = exchange.number("limit")
    if limit is not None and limit <= 0:
        limit = None
    if exchange.parameter("sendInitialEvents"):
        raise _refuse("sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list")
    if match:
        if at is None:
            raise _refuse(
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
            )
        if token:
            raise _refuse(
                "resourceVersionMatch", "Forbidden: resourceVersionMatch is forbidden when continue is provided"
            )
        if match == EXACT and at == 0:
            raise _refuse(
                "resourceVersionMatch",
                'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
            )
    if token and at:
        raise bad_request("specifying resource version is not allowed when using continue")
    return ListOptions(
        labels=exchange.parameter("labelSelector"),
        fields=exchange.parameter("fieldSelector"),
        revision=at,
        exact=match == EXACT or (not match and limit is not None and bool(at)),
        limit=limit,
        token=token,
    )


_PLAIN = ListOptions("", "", None, False, None, "")


def watch_options(exchange: Exchange) -> WatchOptions:
    """Raises StatusError 400 or 422."""
    match = _match(exchange.parameter("resourceVersionMatch"))
    initial = exchange.flag("sendInitialEvents") if exchange.parameter("sendInitialEvents") else None
    if exchange.parameter("continue"):
        raise _refuse("continue", "Forbidden: continue is forbidden for watch")
    if match and initial is None:
        raise _refuse(
            "resourceVersionMatch",
            "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
    if initial is not None and match != NOT_OLDER:
        raise _refuse(
            "resourceVersionMatch",
            f"Forbidden: sendInitialEvents requires setting resourceVersionMatch to {NOT_OLDER}",
        )
    timeout = exchange.number("timeoutSeconds")
    return WatchOptions(
        labels=exchange.parameter("labelSelector"),
        fields=exchange.parameter("fieldSelector"),
        revision=revision(exchange.parameter("resourceVersion")),
        timeout=timeout if timeout and timeout > 0 else None,
        bookmarks=exchange.flag("allowWatchBookmarks"),
        initial=initial,
    )


def too_new(asked: int, current: int) -> StatusError:
    """504: a resourceVersion that this store has not reached."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version", "field": ""}]
    return StatusError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {"causes": causes},
        retry_after=1,
    )
