"""What a load keeps: nothing of the workspaces that it went through."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.widgets import binding, export, schema, widget

from reconciler.loading.judge import Judge
from reconciler.loading.steps import Stepper
from reconciler.loading.turns import Turns
from reconciler.loading.world import World

R = "workspaces/root"
MANY = {f"{R}/w{n}/{name}": text for n in range(50) for name, text in (("workspace.yaml", ""), ("a.yaml", configmap()))}


@contextmanager
def uncollected() -> Iterator[None]:
    """Garbage is not looked for."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "files",
    [
        MANY,
        {f"{A}/bad.yaml": "kind: [", f"{R}/w/workspace.yaml": "", f"{R}/w/x.yaml": "kind: Nothing\n"},
        {  # each takes what the other offers
            f"{A}/schema.json": schema("a1"),
            f"{A}/export.json": export("a1"),
            f"{A}/binding.json": binding("root:b"),
            f"{B}/schema.json": schema("b1"),
            f"{B}/export.json": export("b1"),
            f"{B}/binding.json": binding("root:a"),
            f"{B}/w.json": widget(size=1),
        },
    ],
)
def test_what_a_load_read_goes_with_it_and_waits_for_no_garbage_collector(
    fleet: LoadedFleet, files: dict[str, str]
) -> None:
    with uncollected():
        fleet.commit(files)
        fleet.loader.recheck(fleet.paths())
        left = [type(each).__name__ for each in gc.get_objects() if isinstance(each, (Stepper, World, Judge, Turns))]
    assert left == []


def test_where_a_workspace_stands_is_known_until_it_is_judged(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    steppers: list[Stepper] = []
    finish = Stepper._finish
    monkeypatch.setattr(Stepper, "_finish", lambda stepper: steppers.append(stepper) or finish(stepper))
    fleet.commit(MANY)
    [stepper] = steppers
    assert stepper.done.judged >= 50
    assert list(stepper._cases.places) == ["root"], "which was passed, and not judged"


def test_what_a_step_made_of_a_workspace_is_kept_until_the_store_has_it(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds: list[World] = []
    finish = Stepper._finish
    monkeypatch.setattr(Stepper, "_finish", lambda stepper: worlds.append(stepper._world) or finish(stepper))
    fleet.commit(MANY)
    fleet.commit({f"{R}/w{n}/a.yaml": configmap("b") for n in range(0, 50, 2)})
    for world in worlds:
        assert world._records == {}
        assert world.is_judged("root:w0")
