"""Since when things are so: the times of computed conditions, held against the commits that had them turn.

For property tests over histories: `look` after each load. A condition that says what it said keeps its time; one that
says something else bears the time of the commit that was loaded, or, where something had gone at runtime that it waited
for, the real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson
from support.loadedfleet import LoadedFleet

from apiserver.model import clock
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES

COMPUTED = (
    WORKSPACES,
    LOGICAL_CLUSTERS,
    "apibindings.apis.kcp.io",
    "apiexports.apis.kcp.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "workspacetypes.tenancy.kcp.io",
)


class Which(NamedTuple):
    """A condition of an object, of which there is one with this uid."""

    resource: str
    uid: str
    kind: str


class Said(NamedTuple):
    status: str
    time: str
    born: str


def conditions(fleet: LoadedFleet) -> dict[Which, Said]:
    """All that are computed. What a commit took away waits for runtime alone."""
    return dict(_conditions(fleet))


def _conditions(fleet: LoadedFleet) -> Iterator[tuple[Which, Said]]:
    for resource in COMPUTED:
        for record in fleet.store.scan(resource).records:
            obj: dict[str, Any] = orjson.loads(record.value)
            metadata = obj["metadata"]
            if (metadata.get("annotations") or {}).get("treeplane.dev/origin") != "removed":
                for each in (obj.get("status") or {}).get("conditions") or ():
                    which = Which(resource, metadata["uid"], each["type"])
                    yield which, Said(each["status"], each["lastTransitionTime"], metadata["creationTimestamp"])


def assert_nothing_turned(fleet: LoadedFleet) -> None:
    """As of what is loaded for the first time."""
    assert not {which: said for which, said in conditions(fleet).items() if said.time != said.born}


class Turns:
    """`led`: commits that the branch was led to since the last look. `runtime`: something happened at runtime."""

    def __init__(self, fleet: LoadedFleet) -> None:
        self._fleet = fleet
        self._said: dict[Which, Said] = {}
        self.led: list[str] = []
        self.runtime = False

    def look(self) -> None:
        now = conditions(self._fleet)
        times = [self._time(commit) for commit in dict.fromkeys(self.led)]
        for which, said in now.items():
            before = self._said.get(which)
            if said.time in self._allowed(said, before, times):
                continue
            real = said.time > max(map(self._time, self._fleet.repo.commits))
            assert self.runtime, f"{which} {said}, before {before}; {times}"
            assert real, f"{which} {said}, before {before}; {times}"
        self._said, self.runtime = now, False
        if str(self._fleet.fleet().commit) == self._fleet.repo.head:
            self.led = []  # else it is held as a whole

    def _allowed(self, said: Said, before: Said | None, times: list[str]) -> set[str]:
        if before is None:
            return {said.born, *times}  # it came with one of these, and may have turned with the next
        if said.status != before.status:
            return {*times}
        # It may have turned with one commit, or for what let go at runtime, and back with another.
        return {before.time, *(times if len(times) > 1 or self.runtime else ())}

    def _time(self, commit: str) -> str:
        return clock.rfc3339(self._fleet.repo.repo.commit(commit).time)
