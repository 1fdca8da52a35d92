"""Managers take turns where their controllers wait for the store alone, and keep none while they wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest
from conftest import Eventually

from apiserver.storage.turn import Turn
from reconciler.controllers import manager as managers
from reconciler.controllers.controller import Controller
from reconciler.controllers.manager import CAREFUL, LOCAL, Manager, ManagerSettings


class Seeing(Controller[str]):
    """What it does with a key, and whether it was in turn."""

    name = "seeing"

    def __init__(self, does: Callable[[], Future[list[int]] | None] = lambda: None) -> None:
        self._does = does
        self.in_turn: list[bool] = []

    def reconcile(self, key: str) -> Future[list[int]] | None:
        self.in_turn.append(managers.TURN.is_mine)
        return self._does()


@pytest.fixture
def turn(monkeypatch: pytest.MonkeyPatch) -> Turn:
    made = Turn()
    monkeypatch.setattr(managers, "TURN", made)
    return made


@pytest.fixture
def started() -> Iterator[Callable[[Manager], None]]:
    running: list[Manager] = []

    def start(manager: Manager) -> None:
        running.append(manager)
        manager.start()

    yield start
    for manager in running:
        assert manager.stop()


@pytest.mark.parametrize(
    ("settings", "in_turn"), [(LOCAL, True), (CAREFUL, True), (ManagerSettings(), False)], ids=["local", "careful", ""]
)
def test_who_may_wait_for_others_than_the_store_takes_no_turn(
    turn: Turn, settings: ManagerSettings, in_turn: bool
) -> None:
    controller = Seeing()
    manager = Manager("seeing", [controller], settings=settings)
    controller.queue.add("a")
    assert manager.step()
    assert controller.in_turn == [in_turn]
    assert not turn.is_mine, "whoever stepped goes on without"


def test_the_turn_is_kept_from_key_to_key_and_let_go_of_before_the_thread_sleeps(
    turn: Turn, started: Callable[[Manager], None], eventually: Eventually
) -> None:
    controller = Seeing()
    manager = Manager("seeing", [controller], settings=LOCAL)
    for key in "abc":
        controller.queue.add(key)
    started(manager)
    eventually(lambda: len(controller.in_turn) == 3)
    assert controller.in_turn == [True] * 3
    eventually(lambda: turn._whose == 0)


def test_it_is_let_go_of_where_what_was_written_is_waited_for(
    turn: Turn, started: Callable[[Manager], None], eventually: Eventually
) -> None:
    answer: Future[list[int]] = Future()
    controller = Seeing(lambda: answer)
    manager = Manager("seeing", [controller], settings=LOCAL)
    controller.queue.add("a")
    started(manager)
    eventually(lambda: controller.in_turn == [True] and turn._whose == 0)
    assert not answer.done()
    answer.set_result([1])


def test_it_is_let_go_of_where_a_key_fails(
    turn: Turn, started: Callable[[Manager], None], eventually: Eventually
) -> None:
    def fails() -> None:
        raise ValueError("no")

    controller = Seeing(fails)
    manager = Manager("seeing", [controller], settings=LOCAL)
    controller.queue.add("a")
    started(manager)
    eventually(lambda: len(controller.in_turn) >= 1 and turn._whose == 0)
