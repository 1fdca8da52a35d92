"""Writes that are commits while a large commit is on its way: on top of it, before the rest of it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from support.commitfleet import CommitFleet, a_configmap
from support.loadedfleet import configmap

from apiserver.model.commits import own
from reconciler.loading.pauses import Pauses

R = "workspaces/root"
Wait = Callable[..., Any]
MANY: dict[str, str | None] = {f"{R}/m{n}/{name}": "" for n in range(6) for name in ("workspace.yaml", "x.yaml")}


def during_a_load(
    fleet: CommitFleet, eventually: Wait, files: dict[str, str | None], write: Callable[[], Any]
) -> tuple[Future[Any], list[bool]]:
    """Loads a commit of six workspaces and these files, and writes at its first pause; whether there was an answer by
    the end of each pause."""
    answered: list[bool] = []
    found: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as pool:

        def meanwhile() -> None:
            if not found:
                found.append(pool.submit(write))
                eventually(fleet.committer.waiting)
            if fleet.committer.waiting():
                fleet.committer.serve()
            eventually(lambda: found[0].done() or fleet.committer.waiting())
            answered.append(found[0].done())

        fleet.loader.pauses = Pauses(lambda: 0.0, 0.0)
        fleet.loader.meanwhile = meanwhile
        fleet.repo.commit(MANY | files)
        fleet.load()
        fleet.loader.meanwhile = None
        fleet.load()
        if fleet.committer.waiting():
            fleet.committer.serve()
    return found[0], answered


def test_a_write_is_answered_before_the_rest_is_there(idle: CommitFleet, eventually: Wait) -> None:
    large: list[str] = []

    def write() -> Any:
        large.append(idle.repo.head)
        return idle.create("root:a", "configmaps", a_configmap())

    found, answered = during_a_load(idle, eventually, {}, write)
    assert answered[0]
    assert found.result() == idle.get("root:a", "configmaps", "made")
    assert idle.mirror.repository.first_parents(large[0], idle.repo.head) == [idle.repo.head]
    assert idle.fleet().commit == own(idle.repo.head)
    assert {f"root:m{n}" for n in range(6)} <= set(idle.paths())


def test_a_write_is_made_on_top_of_what_the_large_commit_says(idle: CommitFleet, eventually: Wait) -> None:
    """It is told to look again, since the object is another by then."""

    def write() -> Any:
        return idle.change("root:b", "configmaps", "app", data={"a": "written"})

    found, answered = during_a_load(idle, eventually, {f"{R}/b/app.yaml": configmap(a="large", b="large")}, write)
    assert answered[-1] or found.done()
    assert found.result()["data"] == {"a": "written"}
    assert idle.get("root:b", "configmaps", "app")["data"] == {"a": "written"}


def test_a_write_that_others_follow_waits_for_the_large_commit(idle: CommitFleet, eventually: Wait) -> None:
    export = {"apiVersion": "apis.kcp.io/v1alpha2", "kind": "APIExport", "metadata": {"name": "e"}, "spec": {}}
    found, answered = during_a_load(
        idle, eventually, {}, lambda: idle.create("root:a", "apiexports.apis.kcp.io", export)
    )
    assert not answered[0]
    assert found.result()["metadata"]["name"] == "e"
