"""Group, version, kind and resource as values."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


class GroupResource(NamedTuple):
    group: str
    resource: str

    def __str__(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


_LONGEST = 512
"""Characters of a group and a version, each of which is a DNS name."""


@lru_cache(maxsize=1024)
def split_api_version(api_version: str) -> tuple[str, str]:
    """`apps/v1` → (`apps`, `v1`); `v1` → (``, `v1`). Raises ValueError on more than one slash or an empty version."""
    group, slash, version = api_version.rpartition("/") if len(api_version) <= _LONGEST else ("", "/", "")
    if not version or "/" in group or (slash and not group):
        raise ValueError(f"unexpected GroupVersion string: {api_version}")
    return group, version


def kind_of(manifest: dict[str, Any]) -> GroupVersionKind:
    """Of an object with apiVersion and kind set. Raises ValueError as `split_api_version` does."""
    group, version = split_api_version(manifest["apiVersion"])
    return GroupVersionKind(group, version, manifest["kind"])
