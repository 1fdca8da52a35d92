"""Managers whose controllers wait for the store alone work with the baton, and do not keep it while they wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from conftest import Eventually

from apiserver.storage.baton import Baton
from reconciler.controllers import manager as managers
from reconciler.controllers.controller import Controller
from reconciler.controllers.manager import CAREFUL, LOCAL, Manager, ManagerSettings


class Seeing(Controller[str]):
    """What it does with a key, and whether it had the baton."""

    name = "seeing"

    def __init__(self, does: Callable[[], Future[list[int]] | None] = lambda: None) -> None:
        self._does = does
        self.had_it: list[bool] = []

    def reconcile(self, key: str) -> Future[list[int]] | None:
        self.had_it.append(managers.BATON.is_mine)
        return self._does()


@pytest.fixture
def baton(monkeypatch: pytest.MonkeyPatch) -> Baton:
    made = Baton()
    monkeypatch.setattr(managers, "BATON", made)
    return made


@pytest.fixture
def started() -> Iterator[Callable[[Manager], None]]:
    running: list[Manager] = []

    def start(manager: Manager) -> None:
        running.append(manager)
        manager.start()

    yield start
    for manager in running:
        assert manager.stop(30)


@pytest.mark.parametrize(
    ("settings", "had_it"), [(LOCAL, True), (CAREFUL, True), (ManagerSettings(), False)], ids=["local", "careful", ""]
)
def test_who_may_wait_for_others_than_the_store_does_not_take_it(
    baton: Baton, settings: ManagerSettings, had_it: bool
) -> None:
    controller = Seeing()
    manager = Manager("seeing", [controller], settings=settings)
    controller.queue.add("a")
    assert manager.step()
    assert controller.had_it == [had_it]
    assert not baton.is_mine, "whoever stepped goes on without"


def test_it_is_kept_from_key_to_key_and_let_go_of_before_the_thread_sleeps(
    baton: Baton, started: Callable[[Manager], None], eventually: Eventually
) -> None:
    controller = Seeing()
    manager = Manager("seeing", [controller], settings=LOCAL)
    for key in "abc":
        controller.queue.add(key)
    started(manager)
    eventually(lambda: len(controller.had_it) == 3)
    assert controller.had_it == [True] * 3
    eventually(lambda: baton._whose == 0)


def test_it_is_let_go_of_where_what_was_written_is_waited_for(
    baton: Baton, started: Callable[[Manager], None], eventually: Eventually
) -> None:
    answer: Future[list[int]] = Future()
    controller = Seeing(lambda: answer)
    manager = Manager("seeing", [controller], settings=LOCAL)
    controller.queue.add("a")
    started(manager)
    eventually(lambda: controller.had_it == [True] and baton._whose == 0)
    assert not answer.done()
    answer.set_result([1])


def test_it_is_let_go_of_where_a_key_fails(
    baton: Baton, started: Callable[[Manager], None], eventually: Eventually
) -> None:
    def fails() -> None:
        raise ValueError("no")

    controller = Seeing(fails)
    manager = Manager("seeing", [controller], settings=LOCAL)
    controller.queue.add("a")
    started(manager)
    eventually(lambda: len(controller.had_it) >= 1 and baton._whose == 0)
