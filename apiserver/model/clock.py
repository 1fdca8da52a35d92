"""RFC 3339 times as Kubernetes prints them: UTC, whole seconds (or six decimals for MicroTime)."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


def rfc3339(moment: datetime | float | int) -> str:
    """A datetime or seconds since 1970, as `2026-01-31T12:00:00Z`."""
    if isinstance(moment, datetime):
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return _of_second(int(moment))


@lru_cache(maxsize=1024)
def _of_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def now() -> str:
    return rfc3339(datetime.now(UTC))


def micro_now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse(text: str) -> datetime:
    """Of any RFC 3339 form. Raises ValueError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"no time zone in {text!r}")
    return at
