"""A status commit is made in pieces: what is held meanwhile does not follow what there is to record."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo
from support.statusfiles import forget_the_log, source_files

from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.storage import paging
from apiserver.storage.protocol import Delete, Store
from reconciler.repository.mirror import Mirror
from reconciler.statusbranch import content, history, message, render, stretches, writer
from reconciler.statusbranch.folders import Folders
from reconciler.statusbranch.names import Names
from reconciler.statusbranch.render import Rendering
from reconciler.statusbranch.writer import StatusWriter

MANY, MOST, PIECE = 60, 10, 8


@pytest.fixture
def many(served: Any) -> Any:
    for number in range(MANY):
        served.workspace(f"root:w{number}", f"w{number}", f"workspaces/root/{number % 7}/w{number}")
        served.bind(f"w{number}")
        served.put("deployments.apps:9f86", f"w{number}", "web", status={"replicas": number})
    return served


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much is held at a time, with bounds that a few workspaces reach."""
    found: list[int] = []
    edit = content.edit_tree

    def counted(repo: Any, base: str | None, changes: Mapping[str, Any]) -> str:
        found.append(len(changes))
        return edit(repo, base, changes)

    keep = render._keep
    monkeypatch.setattr(content, "edit_tree", counted)
    monkeypatch.setattr(render, "_keep", lambda kept, *said: (keep(kept, *said), found.append(len(kept)))[0])
    for module, name, most in (
        (content, "MOST", MOST), (render, "_PLACES", MOST), (render, "_PAGE", PIECE), (paging, "_PAGE", PIECE),
        (stretches, "_BATCH", PIECE), (stretches, "_SUMMARIES", PIECE), (history, "_KEPT", MOST),
        (message, "_LISTED", MOST),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, most)
    return found


@pytest.mark.parametrize("log", [True, False], ids=["from the log", "from all there is"])
def test_what_is_held_at_a_time_does_not_follow_what_is_recorded(
    many: Any, store: Store, mirror: Mirror, held: list[int], log: bool
) -> None:
    if not log:
        forget_the_log(store, many)
    commit = StatusWriter(store, mirror).flush()
    assert commit is not None
    assert len(source_files(mirror, commit)) > 2 * MANY
    # A change of a workspace may touch its status, its end and its summary.
    assert max(held) <= MOST + 3 * PIECE


@pytest.mark.parametrize("arriving", [False, True])
def test_in_pieces_it_is_the_tree_that_it_is_at_once(
    many: Any, store: Store, mirror: Mirror, source: FleetRepo, monkeypatch: pytest.MonkeyPatch, arriving: bool
) -> None:
    if arriving:
        came = source.commit({"workspaces/root/b.yaml": ""})
        many.fleet(many.commit, arriving=(came,))
        for number in range(20):
            many.workspace(f"root:n{number}", f"n{number}", head=came, origin=came)
        many.bind("n3")
        many.put("deployments.apps:9f86", "n3", "web", status={"replicas": 3})
    under_way = writer.UnderWay()
    monkeypatch.setattr(under_way, "is_so", lambda: arriving)
    first = StatusWriter(store, mirror, under_way=under_way).flush()
    assert first is not None
    whole = mirror.repository.commit(first).tree
    if arriving:
        files = source_files(mirror, first)
        assert ("workspaces/root/n3/_summary.yaml" in files, "workspaces/root/n4/_summary.yaml" in files) == (
            True,
            False,
        )
    for most in (1, 5):
        for module, name in (
            (content, "MOST"),
            (render, "_PLACES"),
            (render, "_PAGE"),
            (paging, "_PAGE"),
            (stretches, "_BATCH"),
            (stretches, "_SUMMARIES"),
        ):
            monkeypatch.setattr(module, name, most)
        again = StatusWriter(store, mirror, under_way=under_way)
        assert again.flush() is None, "nothing differs from what is there"
        again._whole = True
        assert again.flush() is None
        assert mirror.repository.commit(first).tree == whole


def test_what_the_store_does_not_explain_goes(many: Any, store: Store, mirror: Mirror, served: Any) -> None:
    written = StatusWriter(store, mirror)
    before = written.flush()
    assert before is not None
    for number in (1, 2):
        served.remove(f"root:w{number}", f"w{number}")
    forget_the_log(store, many)
    after = StatusWriter(store, mirror).flush()
    assert after is not None
    files = source_files(mirror, before)
    gone = {path for path in files if path.split("/")[3:4] in (["w1"], ["w2"])}
    assert gone
    assert set(source_files(mirror, after)) == set(files) - gone


def test_a_folder_is_called_as_its_workspace_is(many: Any, store: Store) -> None:
    folders = Folders(store, {"workspaces/root/gone": "root:gone"})
    assert folders.get("workspaces/root/3/w3") == "root:w3"
    assert folders.get("workspaces/root") == "root"
    assert folders.get("workspaces/root/3") is None
    assert folders.get("workspaces/root/gone") == "root:gone"
    assert tree.workspace_at(store, "root:w3") is not None


def test_names_come_back_in_their_order() -> None:
    names, more = Names(), Names()
    for name in ("a", "a", "b", "a"):
        names.add(name)
    more.update(names)
    assert (list(names), list(more), bool(names)) == (["a", "b", "a"], ["a", "b", "a"], True)
    names.clear()
    assert (list(names), bool(names)) == ([], False)


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs something once in each view of a rendering, as long as there is something; the most in one view."""

    class Beside:
        def __init__(self) -> None:
            self.todo: Iterator[Callable[[], object]] = iter(())
            self.at_a_time: list[int] = []

        def work(self) -> None:
            for act in itertools.islice(self.todo, 1):
                act()
                self.at_a_time[-1] += 1

    found = Beside()
    over = Rendering.over

    def opened(self: Rendering, view: Any) -> Any:
        found.at_a_time.append(0)
        return over(self, view)

    def working(name: str) -> Callable[..., Any]:
        render = getattr(Rendering, name)

        def worked(*args: Any) -> Any:
            found.work()
            return render(*args)

        return worked

    monkeypatch.setattr(Rendering, "over", opened)
    for name in ("changed", "summaries", "_summary"):
        monkeypatch.setattr(Rendering, name, working(name))
    monkeypatch.setattr(stretches, "_BATCH", PIECE)
    monkeypatch.setattr(stretches, "_SUMMARIES", PIECE)
    return found


@pytest.mark.parametrize("what", ["what changed", "what arrived"])
def test_what_is_written_while_a_view_is_open_does_not_follow_what_is_rendered(
    many: Any, store: Store, mirror: Mirror, source: FleetRepo, beside: Any, what: str
) -> None:
    """While a view is open, none of the pages that are written anew can be taken again: the store's file grows."""
    recorder = StatusWriter(store, mirror)
    recorder.flush()
    for number in range(MANY):
        many.put("deployments.apps:9f86", f"w{number}", "web", status={"replicas": -number})
    if what == "what arrived":
        came = source.commit({"workspaces/root/b.yaml": ""})
        many.fleet(many.commit, arriving=(came,))
        for number in range(MANY):
            many.workspace(f"root:w{number}", f"w{number}", f"workspaces/root/{number % 7}/w{number}", head=came)
        recorder.flush()
        many.fleet(came)
    beside.at_a_time.clear()
    beside.todo = (lambda: many.put("events", "w1", "e") for _ in range(10 * MANY))
    assert recorder.flush() is not None
    assert sum(beside.at_a_time) > MANY
    assert max(beside.at_a_time) <= 4 * PIECE


def test_who_writes_faster_than_is_rendered_is_not_followed_for_ever(
    many: Any, store: Store, mirror: Mirror, beside: Any
) -> None:
    recorder = StatusWriter(store, mirror)
    recorder.flush()
    faster = itertools.count()

    def act() -> None:
        for number in range(PIECE):
            many.put("deployments.apps:9f86", f"w{number}", "web", status={"replicas": next(faster)})

    beside.todo = itertools.repeat(act)
    act()
    recorder.flush()
    beside.todo = iter(())
    recorder.flush()
    recorder._whole = True
    assert recorder.flush() is None


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["status", "delete", "move", "remove", "come", "pass", "arrive", "end"]), st.integers(0, 3)
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=ACTS, before=st.integers(0, 40), sparing=st.booleans(), batch=st.integers(1, 9))
def test_what_is_rendered_while_the_store_goes_on_is_what_the_last_view_shows(
    store: Store, mirror: Mirror, source: FleetRepo, served: Any, beside: Any,
    acts: list[tuple[str, int]], before: int, sparing: bool, batch: int,
) -> None:  # fmt: skip
    fleet, todo = Changing(served, source), iter(acts)
    under_way = writer.UnderWay()
    if sparing:
        under_way.__enter__()
    store.compact(0)
    recorder = StatusWriter(store, mirror, under_way=under_way)
    recorder.flush()
    for act in itertools.islice(todo, before):
        fleet.do(*act)
    beside.todo = (lambda act=act: fleet.do(*act) for act in todo)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stretches, "_BATCH", batch)
        patch.setattr(stretches, "_SUMMARIES", batch)
        while recorder.flush() is not None or recorder._covered < store.revision():
            pass
        beside.todo = iter(())
        if not sparing:
            recorder._whole = True
            assert recorder.flush() is None, "all that there is, is what the log told"
        fleet.do("end", 0)
        recorder.flush()
        recorder._whole = True
        assert recorder.flush() is None


class Changing:
    """A fleet of four workspaces, with an object in each, in which anything may happen at any moment."""

    def __init__(self, served: Any, source: FleetRepo) -> None:
        self._served, self._source, self._arriving = served, source, ""
        self._there = {n for n in range(4) if tree.workspace_at(served.store, f"root:c{n}")}

    def do(self, what: str, number: int) -> None:
        path, cluster = f"root:c{number}", f"c{number}"
        if what == "arrive" and not self._arriving:
            self._arriving = self._source.commit({f"workspaces/root/{len(self._source.commits)}.yaml": ""})
            self._served.fleet(self._served.commit, arriving=(self._arriving,))
        elif what == "end" and self._arriving:
            self._served.fleet(self._arriving)
            self._arriving = ""
        elif what == "come" and number not in self._there:
            self._there.add(number)
            self._served.workspace(path, cluster, head=self._arriving, origin=self._arriving)
            self._served.bind(cluster)
        elif number in self._there:
            self._do_there(what, path, cluster, number)

    def _do_there(self, what: str, path: str, cluster: str, number: int) -> None:
        key = Key("deployments.apps:9f86", cluster, "default", "web")
        if what == "status":
            revision = self._served.store.revision()
            self._served.put(key.resource, cluster, key.name, status={"replicas": revision})
        elif what == "delete":
            self._served.store.write(Delete(key)).result()
        elif what == "remove":
            self._there.remove(number)
            self._served.remove(path, cluster)
        elif what == "move":
            self._served.workspace(path, cluster, f"workspaces/root/{self._served.store.revision()}/c{number}")
            moved = tree.workspace_at(self._served.store, path)
            assert moved is not None
            self._served.store.write(tree.placed(moved)).result()
        elif what == "pass" and self._arriving:
            record = tree.workspace_at(self._served.store, path)
            assert record is not None
            self._served.workspace(path, cluster, record.directory, head=self._arriving)
