"""Watch histories against a model: whatever is written, selected, resumed, compacted and however slow a connection is,
each watch says exactly what happened, in order, once.

The model is a list of changes. What a watch must have said follows from it and the revision it began at; a watch that
begins with what there is may have read that at any revision between its opening and its first answer, but at one.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NAMESPACES, NAMES, LABELS = ("n", "nn"), ("a", "b", "c"), ("x", "y", "")
SECONDS = 20

Event = tuple[str, str, int]
"""Type, namespace/name=label, revision."""


class Written(NamedTuple):
    """One change: the label before and after, None where the object was or is not there."""

    revision: int
    key: tuple[str, str]
    before: str | None
    after: str | None


class Select(NamedTuple):
    query: str
    namespace: str
    matches: Callable[[tuple[str, str], str], bool]


SELECTS = [
    Select("", "", lambda key, label: True),
    Select("", "n", lambda key, label: key[0] == "n"),
    Select("&labelSelector=l%3Dx", "", lambda key, label: label == "x"),
    Select("&labelSelector=l!%3Dx", "nn", lambda key, label: key[0] == "nn" and label != "x"),
    Select("&labelSelector=l+in+(x,y)", "", lambda key, label: label in ("x", "y")),
    Select("&fieldSelector=metadata.name%3Da", "", lambda key, label: key[1] == "a"),
    Select("&fieldSelector=metadata.name%3Db&labelSelector=l%3Dy", "n",
           lambda key, label: key == ("n", "b") and label == "y"),
]  # fmt: skip

CHANGE = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES), st.sampled_from([*LABELS, None]))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.lists(CHANGE, min_size=1, max_size=4)),
        st.tuples(st.just("write"), st.lists(CHANGE, min_size=1, max_size=4)),
        st.tuples(
            st.just("open"), st.integers(0, len(SELECTS) - 1), st.sampled_from(["any", "initial", "old", "old", "now"]),
            st.integers(0, 12),
        ),
        st.tuples(st.just("resume"), st.integers(0, 7)),
        st.tuples(st.just("compact"), st.integers(0, 8)),
        st.tuples(st.just("breathe"), st.integers(0, 3)),
        st.tuples(st.just("bookmark")),
    ),
    min_size=5,
    max_size=40,
)  # fmt: skip
_numbers = itertools.count()


class Model:
    """What was written to one workspace."""

    def __init__(self, revision: int) -> None:
        self.begin = revision
        self.log: list[Written] = []

    def state(self, at: int | None = None) -> dict[tuple[str, str], tuple[str, int]]:
        found: dict[tuple[str, str], tuple[str, int]] = {}
        for change in self.log:
            if at is not None and change.revision > at:
                break
            if change.after is None:
                found.pop(change.key, None)
            else:
                found[change.key] = (change.after, change.revision)
        return found

    def initial(self, select: Select, at: int) -> list[Event]:
        return [
            ("ADDED", f"{key[0]}/{key[1]}={label}", revision)
            for key, (label, revision) in sorted(self.state(at).items())
            if select.matches(key, label)
        ]

    def after(self, select: Select, at: int) -> list[Event]:
        found = []
        for change in self.log:
            if change.revision <= at:
                continue
            was = change.before is not None and select.matches(change.key, change.before)
            now = change.after is not None and select.matches(change.key, change.after)
            if was or now:
                kind = ("MODIFIED" if was else "ADDED") if now else "DELETED"
                label = change.after if now else change.before
                found.append((kind, f"{change.key[0]}/{change.key[1]}={label}", change.revision))
        return found


class Line:
    """A client on a connection that is now and then busy: then nothing goes straight to it, and writes take a while."""

    def __init__(self, app: Any, cluster: str, select: Select, query: str, chance: random.Random) -> None:
        self.events: list[Event] = []
        self.expired = False
        self.bookmarks: list[tuple[int, int]] = []
        """Revision, and how many events came before."""
        self.marked = 0
        """The revision of the bookmark that ended the initial events."""
        self._rest = b""
        self._chance = chance
        self._gone = asyncio.Event()
        namespace = f"/namespaces/{select.namespace}" if select.namespace else ""
        scope = {
            "type": "http",
            "method": "GET",
            "path": f"/clusters/{cluster}/api/v1{namespace}/configmaps",
            "query_string": f"watch=1{query}{select.query}".encode(),
            "headers": [],
            "extensions": {"treeplane.direct": self},
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))

    def reply(self, *_: Any) -> bool:
        return False

    def stream(self, scope: Any, data: bytes) -> bool:
        if self._chance.random() < 0.4:
            return False
        self._take(data)
        return True

    async def _receive(self) -> Any:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        busy = self._chance.choice((None, None, None, None, 0, 0.003))
        if busy is not None:
            await asyncio.sleep(busy)
        if message["type"] == "http.response.start":
            assert message["status"] == 200
            return
        self._take(message["body"])

    def _take(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            event = orjson.loads(line)
            obj = event["object"]
            if event["type"] == "ERROR":
                assert (obj["code"], obj["reason"]) == (410, "Expired")
                self.expired = True
                continue
            metadata = obj["metadata"]
            revision = int(metadata["resourceVersion"])
            if event["type"] == "BOOKMARK":
                if "annotations" in metadata:
                    assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
                    self.marked = revision
                self.bookmarks.append((revision, len(self.events)))
                continue
            label = metadata.get("labels", {}).get("l", "")
            self.events.append((event["type"], f"{metadata['namespace']}/{metadata['name']}={label}", revision))

    async def leave(self) -> None:
        self._gone.set()
        await self.task


class Watched(NamedTuple):
    """`at`: the revision it began at, None if it began with what there was (then at `opened` or later)."""

    line: Line
    select: Select
    at: int | None
    opened: int
    initial: bool


class History:
    """One example: writes and watches of one workspace, with the model beside."""

    def __init__(self, api: Any, seed: int) -> None:
        self.api = api
        self.chance = random.Random(seed)
        number = next(_numbers)
        self.cluster, self.path = f"history{number:09}", f"root:h{number}"
        api.put_workspace(self.path, self.cluster)
        self.model = Model(api.store.revision())
        self.watched: list[Watched] = []

    def write(self, changes: list[tuple[str, str, str | None]]) -> None:
        """One transaction; a deletion of what is not there is left out."""
        api, state = self.api, self.model.state()
        by_key = {(namespace, name): label for namespace, name, label in changes}
        for (namespace, name), label in by_key.items():
            before = state.get((namespace, name), (None, 0))[0]
            if label is None and before is None:
                continue
            labels = {"l": label} if label else {}
            turn = {"t": str(len(self.model.log))}
            obj = api.manifest("v1 ConfigMap", name, namespace, self.cluster, labels=labels, data=turn)
            revision = api.delete(obj) if label is None else api.put(obj)
            self.model.log.append(Written(revision, (namespace, name), before, label))

    def open(self, which: int, start: str, back: int) -> None:
        known = [self.model.begin, *(c.revision for c in self.model.log)]
        now, select = self.api.store.revision(), SELECTS[which]
        at = known[max(0, len(known) - 1 - back)] if start == "old" else known[-1] if start == "now" else None
        query = {
            "any": "&resourceVersion=0&allowWatchBookmarks=true",
            "initial": "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        }.get(start, f"&resourceVersion={at}&allowWatchBookmarks=true")
        line = Line(self.api.app, self.path, select, query, self.chance)
        self.watched.append(Watched(line, select, at, now, start == "initial"))

    async def resume(self, which: int) -> None:
        """Ends a watch and goes on where it was."""
        if not self.watched:
            return
        old = self.watched[which % len(self.watched)]
        await old.line.leave()
        if not old.line.events:
            return
        at = old.line.events[-1][2] if old.at is not None or not self.in_initial(old) else None
        if at is not None:
            line = Line(self.api.app, self.path, old.select, f"&resourceVersion={at}", self.chance)
            self.watched.append(Watched(line, old.select, at, at, False))

    def in_initial(self, watched: Watched) -> bool:
        """Whether it may still have been among the objects that there were: those are in the order of their names."""
        return watched.line.events[-1][2] <= watched.opened

    async def check(self) -> None:
        """Every watch has said what it must, or more of it is on its way."""
        deadline = asyncio.get_running_loop().time() + SECONDS
        for watched in self.watched:
            while not self.right(watched):
                assert asyncio.get_running_loop().time() < deadline, self.wrong(watched)
                await asyncio.sleep(0.001)
        for _ in range(3):
            await asyncio.sleep(0)
        for watched in self.watched:
            assert self.right(watched), self.wrong(watched)  # nothing came twice
            for revision, count in watched.line.bookmarks:
                assert all(at > revision for _, _, at in watched.line.events[count:]), "a bookmark ran ahead"

    def right(self, watched: Watched) -> bool:
        line, found = watched.line, watched.line.events
        begin = watched.opened if watched.at is None else watched.at
        if line.expired and begin >= self.api.store.oldest():
            return False
        if line.task.done():  # it was left, or the log was gone: it said a beginning of what it had to
            return any(expected[: len(found)] == found for expected in self.expected(watched))
        if watched.initial and not line.marked:
            return False
        return any(expected == found for expected in self.expected(watched))

    def expected(self, watched: Watched) -> list[list[Event]]:
        model, select = self.model, watched.select
        if watched.at is not None:
            return [model.after(select, watched.at)]
        if watched.line.marked:
            snapshots = [watched.line.marked]
        else:
            snapshots = [watched.opened, *(c.revision for c in model.log if c.revision > watched.opened)]
        return [model.initial(select, at) + model.after(select, at) for at in snapshots]

    def wrong(self, watched: Watched) -> str:
        return f"{watched} said {watched.line.events}, not {self.expected(watched)}"


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(steps=STEPS, seed=st.integers(0, 1 << 30))
def test_watches_tell_what_happened(api: Any, steps: list[tuple[Any, ...]], seed: int) -> None:
    async def scenario() -> None:
        history = History(api, seed)
        try:
            for which in (0, 0, 2, 4):  # so that the hub is at work from the beginning
                history.open(which, "any", 0)
            await asyncio.sleep(0.002)
            for verb, *arguments in steps:
                match verb:
                    case "write":
                        history.write(*arguments)
                    case "open":
                        history.open(*arguments)
                    case "resume":
                        await history.resume(*arguments)
                    case "bookmark" if api.hub.count:
                        api.hub._timer.cancel()
                        api.hub._bookmark()
                    case "compact":
                        api.store.compact(*arguments)
                    case "breathe":
                        await asyncio.sleep(arguments[0] / 1000)
            await history.check()
        finally:
            for watched in history.watched:
                await watched.line.leave()

    asyncio.run(asyncio.wait_for(scenario(), 60))
