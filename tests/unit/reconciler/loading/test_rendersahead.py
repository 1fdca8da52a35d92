"""What comes of tenants' repositories is rendered before it counts: in turns, and nobody waits for a stranger's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo

from reconciler.layout.inputs import Inputs
from reconciler.loading.expected import TOGETHER
from reconciler.loading.renderings import RenderedDirectory
from reconciler.loading.rendersahead import PreparedRenderings
from reconciler.rendering.rendering import Nowhere, Rendered
from reconciler.rendering.request import RenderRequest, Tool

_LONG = 20.0


class TimedRenders(Nowhere):
    """`takes`: seconds by directory; `fails`: those that cannot be rendered for now; `stuck`: those that end with
    `go_on`."""

    def __init__(self) -> None:
        self.now, self.asked = 0.0, list[str]()
        self.takes: dict[str, float] = {}
        self.fails, self.stuck, self.go_on = set[str](), set[str](), threading.Event()
        self.begun = threading.Semaphore(0)
        self._made: set[str] = set()

    def is_at_hand(self, request: RenderRequest) -> bool:
        return request.digest in self._made

    def rendered(self, request: RenderRequest) -> Rendered:
        self.asked.append(request.directory)
        self.begun.release()
        self.now += self.takes.get(request.directory, 0.0)
        if request.directory in self.stuck:
            assert self.go_on.wait(_LONG)
        if request.directory in self.fails:
            return Rendered(fault="it takes more than 30 s", hint="less", lasting=False)
        self._made.add(request.digest)
        return Rendered(request.directory.encode())


Directory = Callable[..., RenderedDirectory]


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    repos: dict[str, FleetRepo] = {}

    def make(name: str, repo: str = "one", version: str = "1") -> RenderedDirectory:
        at = repos.setdefault(repo, FleetRepo(tmp_path / repo)).repo
        request = RenderRequest(Tool.KUSTOMIZE, name, at, tuple, f"{name} {version}")
        return RenderedDirectory(f"{name}/kustomization.yaml", request, Inputs(()))

    return make


@pytest.fixture
def renders() -> TimedRenders:
    return TimedRenders()


@pytest.fixture
def ahead(renders: TimedRenders) -> PreparedRenderings:
    """Of which every step is called by the test."""
    return PreparedRenderings(renders, at_once=0, now=lambda: renders.now)


def test_it_is_rendered_before_it_counts(ahead: PreparedRenderings, directory: Directory) -> None:
    a = directory("a")
    assert ahead.rendered(a.request).fault == "it is being rendered"
    assert not ahead.is_ready("root:a", "root:a", [a])
    assert ahead.came() == set()
    assert ahead.work()
    assert (ahead.came(), ahead.came()) == ({"root:a"}, set())
    assert ahead.is_ready("root:a", "root:a", [a])
    assert ahead.rendered(a.request).output == b"a"
    assert not ahead.work()


def test_each_workspace_has_its_turn(ahead: PreparedRenderings, renders: TimedRenders, directory: Directory) -> None:
    assert not ahead.is_ready("root:a", "root:a", [directory(f"a{number}") for number in range(3)])
    assert not ahead.is_ready("root:b", "root:b", [directory("b0")])
    while ahead.work():
        pass
    assert renders.asked == ["a0", "b0", "a1", "a2"]


def test_what_fails_for_now_is_told_until_it_is_tried_again(
    ahead: PreparedRenderings, renders: TimedRenders, directory: Directory
) -> None:
    a = directory("a")
    renders.fails = {"a"}
    assert not ahead.is_ready("root:a", "root:a", [a])
    assert ahead.work()
    assert ahead.is_ready("root:a", "root:a", [a])
    assert ahead.rendered(a.request).fault == "it takes more than 30 s"
    assert ahead.came() == {"root:a"}
    renders.fails.clear()
    assert renders.asked == ["a"]
    ahead.again("root:a", "root:a", [a])
    assert ahead.came() == set()
    assert ahead.work()
    assert (ahead.came(), ahead.rendered(a.request).output) == ({"root:a"}, b"a")
    ahead.again("root:a", "root:a", [a])
    assert ahead.came() == {"root:a"}


def test_what_is_late_of_one_tenant_is_not_of_another(
    ahead: PreparedRenderings, renders: TimedRenders, directory: Directory
) -> None:
    renders.fails = {"a"}
    assert not ahead.is_ready("root:a", "root:a", [directory("a")])
    assert ahead.work()
    assert ahead.is_ready("root:a", "root:a", [directory("a")])
    assert not ahead.is_ready("root:b", "root:b", [directory("a", "two")])


def test_a_workspace_has_a_minute(ahead: PreparedRenderings, renders: TimedRenders, directory: Directory) -> None:
    some = [directory(f"a{number}") for number in range(32)]
    renders.takes = dict.fromkeys((f"a{number}" for number in range(32)), TOGETHER / 2)
    assert not ahead.is_ready("root:a", "root:a", some)
    while ahead.work():
        pass
    assert renders.asked == ["a0", "a1"]
    assert ahead.came() == {"root:a"}
    assert ahead.is_ready("root:a", "root:a", some)
    assert "takes too long together" in ahead.rendered(some[2].request).fault


def test_another_head_takes_the_place_of_what_was_wanted(
    ahead: PreparedRenderings, renders: TimedRenders, directory: Directory
) -> None:
    assert not ahead.is_ready("root:a", "root:a", [directory("a"), directory("b")])
    assert ahead.work()
    assert not ahead.is_ready("root:a", "root:a", [directory("b", version="2")])
    while ahead.work():
        pass
    assert renders.asked == ["a", "b"]
    assert ahead.is_ready("root:a", "root:a", [directory("b", version="2")])
    assert not ahead.is_ready("root:a", "root:a", [directory("b")])


def test_those_that_took_long_have_half_of_the_places(renders: TimedRenders, directory: Directory) -> None:
    came = threading.Event()
    ahead = PreparedRenderings(renders, came.set, at_once=2, now=lambda: renders.now)
    tenants = [f"slow{number}" for number in range(3)]
    renders.takes = dict.fromkeys(tenants, 10.0)
    for name in tenants:  # so it is known of them
        assert not ahead.is_ready(name, name, [directory(name, version="0")])
        assert came.wait(_LONG)
        came.clear()
    renders.takes.clear()
    renders.stuck = {*tenants}
    while renders.begun.acquire(blocking=False):
        pass
    ahead.came()
    for name in tenants:
        assert not ahead.is_ready(name, name, [directory(name)])
    assert renders.begun.acquire(timeout=_LONG)
    assert not ahead.is_ready("root:good", "root:good", [directory("good")])
    assert came.wait(_LONG)
    assert ahead.came() == {"root:good"}
    assert renders.asked[3:] == ["slow0", "good"]
    renders.go_on.set()
    for _ in tenants[1:]:
        assert renders.begun.acquire(timeout=_LONG)
    ahead.drop()


def test_many_slow_workspaces_of_one_source_leave_the_places_of_others(
    renders: TimedRenders, directory: Directory
) -> None:
    """Of a tenant of whom nobody knows yet that his take long, with as many as there may be."""
    came, kids = threading.Event(), [f"root:slow:{number}" for number in range(100)]
    ahead = PreparedRenderings(renders, came.set, at_once=2, now=lambda: renders.now)
    renders.stuck = {*kids, "head"}
    assert not ahead.has("root:slow", {"": [directory("head")], **{kid: [directory(kid)] for kid in kids[:50]}})
    for kid in kids:
        assert not ahead.is_ready("root:slow", kid, [directory(kid)])
    assert renders.begun.acquire(timeout=_LONG)
    assert not ahead.is_ready("root:good", "root:good", [directory("good")])
    assert came.wait(_LONG)
    assert (ahead.came(), renders.asked) == ({"root:good"}, ["head", "good"])
    assert (ahead.is_busy("root:slow"), ahead.is_busy("root:good")) == (True, False)
    ahead.drop()
    renders.go_on.set()


def test_a_head_is_known_once_all_of_it_is(ahead: PreparedRenderings, directory: Directory) -> None:
    head = {"": [directory("a")], "kid": [directory("k1"), directory("k2")], "plain": []}
    assert not ahead.has("root:a", head)
    while ahead.is_busy("root:a"):
        assert not ahead.has("root:a", head)
        assert ahead.work()
    assert ahead.has("root:a", head)
    assert ahead.came() == set()


def test_what_takes_too_long_of_one_workspace_is_not_late_of_another(
    ahead: PreparedRenderings, renders: TimedRenders, directory: Directory
) -> None:
    renders.takes = {"k1": TOGETHER}
    head = {"kid": [directory("k1"), directory("k2")], "two": [directory("t1"), directory("t2")]}
    assert not ahead.has("root:a", head)
    while ahead.work():
        pass
    assert ahead.has("root:a", head)
    assert "takes too long together" in ahead.rendered(directory("k2").request).fault
    assert [ahead.rendered(directory(name).request).output for name in ("k1", "t1", "t2")] == [b"k1", b"t1", b"t2"]


def test_who_fails_otherwise_is_late(
    renders: TimedRenders, directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: RenderRequest) -> Rendered:
        raise OSError("no disk")

    monkeypatch.setattr(renders, "rendered", fails)
    ahead = PreparedRenderings(renders, at_once=0)
    assert not ahead.is_ready("root:a", "root:a", [directory("a")])
    assert ahead.work()
    assert ahead.is_ready("root:a", "root:a", [directory("a")])
    assert "cannot be read" in ahead.rendered(directory("a").request).fault


def test_what_is_dropped_is_not_begun(ahead: PreparedRenderings, directory: Directory) -> None:
    assert not ahead.is_ready("root:a", "root:a", [directory("a")])
    ahead.drop()
    assert not ahead.work()
    assert not ahead.is_ready("root:a", "root:a", [directory("a")])
    assert ahead.work()
    assert ahead.came() == {"root:a"}
