"""What several API workers tell about the same writes, while some of them are killed: one history.

Writers, watches that end and resume, readers and a killer run against `treeplane up --workers 3`. Afterwards one watch
from the beginning is taken as what happened, and everything else has to agree with it. The guarantees are those that
etcd's robustness tests check, and the failures those that they have found:

    ordered, unique      revisions of a watch only grow, none comes twice (watches that travel back in time)
    reliable, resumable  nothing is missing, also over breaks (events lost while starved, compacted, at a deletion)
    bookmarkable         what a bookmark covers has come before it (progress that runs ahead)
    created, previous    ADDED if and only if it was not there; DELETED shows the last state
    filtered             an object that enters or leaves a selector is ADDED or DELETED there
    durable              what was acknowledged happened, once, at the revision of the answer (writes lost in a crash)
    fresh                what one worker acknowledged all others show; a list is one state (stale reads)
    the future           a watch of a revision that is not there yet is refused (notifications of the future)
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from support.plane import Connection, Plane, PlaneError

MAPS = "/clusters/root:lab/api/v1/namespaces/default/configmaps"
FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: histories}\n",
    "workspaces/root/lab/workspace.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: kube-compat, path: root}}
""",
}
WRITERS, WRITES, NAMES, LABELS = 4, 80, 10, ("x", "y")
KILLS_AFTER = (WRITERS * WRITES // 4, WRITERS * WRITES // 2)
BROKEN = (OSError, http.client.HTTPException, ValueError)

Matches = Callable[[str, str], bool]
SELECTORS: dict[str, Matches] = {
    "": lambda name, label: True,
    "&labelSelector=l%3Dx": lambda name, label: label == "x",
    "&labelSelector=l%21%3Dx": lambda name, label: label != "x",
    "&fieldSelector=metadata.name%3Dm3": lambda name, label: name == "m3",
}


@dataclass(frozen=True, slots=True)
class Event:
    """`label`, `turn`: of the object, for a deletion its last ones. `turn` names the write that made it."""

    type: str
    revision: int
    name: str
    label: str
    turn: str


def event_of(found: Any) -> Event:
    metadata = found["object"]["metadata"]
    turn = found["object"].get("data", {}).get("turn", "")
    label = metadata.get("labels", {}).get("l", "")
    return Event(found["type"], int(metadata["resourceVersion"]), metadata.get("name", ""), label, turn)


class Clients:
    """Connections that are made anew when a worker dies."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self._connection: Connection | None = None

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
        """Raises one of BROKEN when the connection breaks: then nobody knows whether it was done."""
        try:
            if self._connection is None:
                self._connection = self.plane.connection()
            return self._connection.request(method, path, body, content_type)
        except BROKEN:
            self.close()
            raise

    def read(self, path: str) -> Any:
        """A read may be tried again."""
        for _ in range(100):
            try:
                return self.request("GET", path)
            except BROKEN:
                continue
        raise PlaneError(f"no worker answers GET {path}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


@dataclass
class Log:
    """What writers and readers saw."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """By turn, the revision. (An answer to a deletion does not tell any.)"""
    unknown: set[str] = field(default_factory=set)
    lists: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    lock: threading.Condition = field(default_factory=threading.Condition)
    done: bool = False

    def note(self, turn: str, revision: int) -> None:
        with self.lock:
            self.acknowledged[turn] = revision
            self.lock.notify_all()

    def wait_for(self, count: int) -> None:
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.acknowledged) >= count or self.done, 120)


class Writer:
    """Creates, updates and deletes; after each answer it asks over another connection what there is."""

    def __init__(self, plane: Plane, log: Log, number: int) -> None:
        self._write, self._read = Clients(plane), Clients(plane)
        self._log, self._number = log, number
        self._chance = random.Random(number)

    def run(self) -> None:
        for turn in range(WRITES):
            name = f"m{self._chance.randrange(NAMES)}"
            try:
                self._one(f"{self._number}.{turn}", name)
            except BROKEN:
                continue
        self._write.close()
        self._read.close()

    def _one(self, turn: str, name: str) -> None:
        labels = {"l": self._chance.choice(LABELS)}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels},
                "data": {"turn": turn}}  # fmt: skip
        delete = self._chance.random() < 0.25
        self._log.unknown.add(turn)
        if delete:
            answer = self._write.request("DELETE", f"{MAPS}/{name}")
        else:
            answer = self._write.request("PUT", f"{MAPS}/{name}", body)
            if answer.status == 404:
                answer = self._write.request("POST", MAPS, body)
        self._log.unknown.discard(turn)
        if answer.status in (404, 409):
            return
        assert answer.status in (200, 201), answer
        if delete:
            return
        revision = int(answer.body["metadata"]["resourceVersion"])
        self._log.note(turn, revision)
        self._look(name, revision)

    def _look(self, name: str, revision: int) -> None:
        found = self._read.read(f"{MAPS}?fieldSelector=metadata.name%3D{name}")
        if int(found.body["metadata"]["resourceVersion"]) < revision:
            self._log.stale.append(f"a list at {found.body['metadata']} after {revision} was acknowledged")
        for item in found.body["items"]:
            if int(item["metadata"]["resourceVersion"]) < revision:
                self._log.stale.append(f"{name} at {item['metadata']['resourceVersion']} after {revision}")


class Lister:
    """Reads all pages of lists, each page from whichever worker."""

    def __init__(self, plane: Plane, log: Log) -> None:
        self._clients, self._log = [Clients(plane) for _ in range(3)], log

    def run(self) -> None:
        clients = itertools.cycle(self._clients)
        while not self._log.done:
            found: dict[str, str] = {}
            token, revision = "", 0
            while True:
                answer = next(clients).read(f"{MAPS}?limit=3&continue={token}")
                meta = answer.body["metadata"]
                assert revision in (0, int(meta["resourceVersion"])), "pages of two snapshots"
                revision = int(meta["resourceVersion"])
                for item in answer.body["items"]:
                    assert item["metadata"]["name"] not in found, "twice in one list"
                    found[item["metadata"]["name"]] = item.get("data", {}).get("turn", "")
                token = meta.get("continue", "")
                if not token:
                    break
            self._log.lists.append((revision, found))
        for each in self._clients:
            each.close()


class Watcher:
    """Watches from a revision on, and again from the last that it was told when the connection ends."""

    def __init__(self, plane: Plane, query: str, begin: int, until: Callable[[], int]) -> None:
        self.events: list[Event] = []
        self.bookmarks: list[tuple[int, int]] = []
        """Revision, and how many events came before."""
        self.query, self.breaks = query, 0
        self._plane, self._at, self._until = plane, begin, until

    def run(self) -> None:
        while not self._complete():
            connection = self._plane.connection()
            query = f"watch=1&resourceVersion={self._at}&allowWatchBookmarks=true&timeoutSeconds=2{self.query}"
            try:
                line = b""
                for line in connection.stream(f"{MAPS}?{query}"):
                    self._take(json.loads(line))
                self.breaks += b"BOOKMARK" not in line  # which a watch ends with
            except BROKEN:
                self.breaks += 1
            finally:
                connection.close()

    def _take(self, found: Any) -> None:
        assert found["type"] != "ERROR", found
        event = event_of(found)
        self._at = event.revision
        if event.type == "BOOKMARK":
            self.bookmarks.append((event.revision, len(self.events)))
        else:
            self.events.append(event)

    def _complete(self) -> bool:
        """A bookmark at or behind the last write: all has come."""
        last = self._until()
        return bool(last and self._at >= last)


def workers(plane: Plane) -> list[int]:
    found = []
    for pid in plane.pids():
        with suppress(OSError):  # it has just ended
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            found += [pid] if "apiserver" in words else []
    return found


def connections(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("histories")
    for path, text in FLEET.items():
        (folder / "fleet" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "fleet" / path).write_text(text)
    with Plane(folder / "fleet", folder / "server" / "data", "--workers", "3") as server:
        yield server


def in_thread(run: Callable[[], None], log: Log) -> threading.Thread:
    def guarded() -> None:
        try:
            run()
        except BaseException as error:
            log.failures.append(f"{getattr(run, '__self__', run)}: {error!r}")

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    return thread


def test_all_workers_tell_one_history(served: Plane, eventually: Any) -> None:
    eventually(lambda: served.get(MAPS)["items"], 30)  # kube-root-ca.crt: from now on only the test writes here
    begin = int(served.get(f"{MAPS}?limit=1")["metadata"]["resourceVersion"])
    log, last = Log(), [0]
    watchers = [Watcher(served, query, begin, lambda: last[0]) for query in SELECTORS for _ in range(2)]
    watching = [in_thread(watcher.run, log) for watcher in watchers]
    listing = in_thread(Lister(served, log).run, log)
    writing = [in_thread(Writer(served, log, number).run, log) for number in range(WRITERS)]
    for count in KILLS_AFTER:
        log.wait_for(count)
        victim = max(workers(served), key=connections)
        os.kill(victim, signal.SIGKILL)
        eventually(lambda victim=victim: victim not in (now := workers(served)) and len(now) == 3, 30)
    for thread in writing:
        thread.join(120)
        assert not thread.is_alive()
    log.done = True
    end = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m3", "labels": {"l": "x"}},
           "data": {"turn": "end"}}  # fmt: skip
    clients = Clients(served)
    clients.request("DELETE", f"{MAPS}/m3")
    made = clients.request("POST", MAPS, end)
    log.note("end", int(made.body["metadata"]["resourceVersion"]))
    last[0] = log.acknowledged["end"]
    for thread in [*watching, listing]:
        thread.join(60)
        assert not thread.is_alive()
    assert not log.failures
    truth = what_happened(served, begin, last[0])
    check_truth(truth, log)
    for watcher in watchers:
        check_watch(watcher, truth)
    check_lists(log, truth)
    assert not log.stale
    assert sum(watcher.breaks for watcher in watchers) > 0, "no watch was on a worker that was killed"
    future = clients.request("GET", f"{MAPS}?watch=1&resourceVersion={last[0] + 10**6}")
    clients.close()
    assert (future.status, future.body["reason"]) == (504, "Timeout")


def what_happened(plane: Plane, begin: int, end: int) -> list[Event]:
    connection = plane.connection()
    found = []
    try:
        for line in connection.stream(f"{MAPS}?watch=1&resourceVersion={begin}&timeoutSeconds=60"):
            found.append(event_of(json.loads(line)))
            if found[-1].revision >= end:
                return found
    finally:
        connection.close()
    raise AssertionError(f"the history ends at {found[-1:]}, not at {end}")


def check_truth(truth: list[Event], log: Log) -> None:
    there: dict[str, Event] = {}
    turns: dict[str, int] = {}
    revision = 0
    for event in truth:
        assert event.revision > revision, "not in order"
        revision = event.revision
        before = there.get(event.name)
        if event.type == "DELETED":
            assert before is not None, event
            assert (event.label, event.turn) == (before.label, before.turn), "not the last state"
            del there[event.name]
            continue
        assert event.type == ("MODIFIED" if before else "ADDED"), event
        assert event.turn not in turns, "one write happened twice"
        turns[event.turn] = event.revision
        there[event.name] = event
    missing = {turn: at for turn, at in log.acknowledged.items() if turns.get(turn) != at}
    assert not missing, "acknowledged and not there"
    assert set(turns) - set(log.acknowledged) <= log.unknown, "happened and never asked for"


def check_watch(watcher: Watcher, truth: list[Event]) -> None:
    matches = SELECTORS[watcher.query]
    expected: list[Event] = []
    labels: dict[str, str] = {}
    for event in truth:
        was = event.name in labels and matches(event.name, labels[event.name])
        now = event.type != "DELETED" and matches(event.name, event.label)
        last = labels.get(event.name, "")
        if event.type == "DELETED":
            labels.pop(event.name)
        else:
            labels[event.name] = event.label
        if now:
            expected.append(Event("MODIFIED" if was else "ADDED", event.revision, event.name, event.label, event.turn))
        elif was:
            expected.append(Event("DELETED", event.revision, event.name, last, ""))
    found = [Event(e.type, e.revision, e.name, e.label, "" if e.type == "DELETED" else e.turn) for e in watcher.events]
    assert found == [e if e.type != "DELETED" else Event(e.type, e.revision, e.name, e.label, "") for e in expected]
    for revision, count in watcher.bookmarks:
        assert all(event.revision <= revision for event in watcher.events[:count])
        assert all(event.revision > revision for event in watcher.events[count:])


def check_lists(log: Log, truth: list[Event]) -> None:
    assert log.lists
    for revision, found in log.lists:
        state: dict[str, str] = {}
        for event in truth:
            if event.revision > revision:
                break
            if event.type == "DELETED":
                del state[event.name]
            else:
                state[event.name] = event.turn
        assert {name: turn for name, turn in found.items() if name.startswith("m")} == state, f"not as at {revision}"
