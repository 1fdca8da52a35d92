"""How many lists a process answered, by group and resource, in Prometheus' text format: part of the server's /metrics.

Counted by kube.py, told by the shell. Named as in kube-apiserver, which counts those that its cache answers: here that
is every list. It says nothing of workspaces, and tenants make up the names of kinds, so it is bounded: beyond that all
others are one.
"""

from __future__ import annotations

from collections import Counter

_NAME = "apiserver_cache_list_total"
_HEAD = (
    f"# HELP {_NAME} [ALPHA] Number of LIST requests served from the store, which is a cache of git.",
    f"# TYPE {_NAME} counter",
)
_MOST = 5000
_OTHERS = ("", "")
"""Group and resource of what is beyond the bound."""


class ListCounts:
    """Of one process, since its start."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._counts: Counter[tuple[str, str]] = Counter()

    def count(self, group: str, resource: str) -> None:
        """One more list. Names are those of kinds that are served, so nothing in them has to be escaped."""
        key = group, resource
        self._counts[key if key in self._counts or len(self._counts) < self._most else _OTHERS] += 1

    def lines(self, worker: str) -> list[str]:
        """`worker`: which process that is."""
        told = [
            f'{_NAME}{{group="{group}",index="",resource="{resource}",worker="{worker}"}} {count}'
            for (group, resource), count in sorted(self._counts.items())
        ]
        return [*_HEAD, *told]
