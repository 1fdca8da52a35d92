"""The reconciler's process, as far as it is no server yet."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.loadedfleet import LoadedFleet

from apiserver.storage.protocol import NoSpace, Store
from reconciler.__main__ import main
from reconciler.commands.children import MODULE
from reconciler.commands.reconcile import Reconciler
from reconciler.commands.report import Report
from reconciler.commands.roles import Handles, Roles
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Beginning
from reconciler.repository.mirror import Heads


def test_a_start_on_a_full_disk_waits_for_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.repo.commit({"a": "b"})
    settings = ReconcileSettings(fleet.directory, fleet.keys, source=str(fleet.repo.path), url="u", local_url="u")
    roles, full = Roles(fleet.directory), [NoSpace("/data/store is full")] * 2
    taken = roles.handles

    def handles(store: Store) -> Handles:
        if full:
            raise full.pop()
        return taken(store)

    monkeypatch.setattr(roles, "handles", handles)
    monkeypatch.setattr("reconciler.commands.reconcile._AGAIN", 0.01)
    monkeypatch.setattr(Reconciler, "_opened", lambda *_: fleet.store)
    reconciler = Reconciler(settings, Report(), roles)
    found = reconciler._open(Beginning(Heads(fleet.repo.head, None), None))
    assert found.loading.revision() == fleet.store.revision()
    said = [line for line in capsys.readouterr().out.splitlines() if "is full" in line]
    assert len(said) == 1, "it is said once"
    full.append(NoSpace("/data/store is full"))
    threading.Timer(0.1, reconciler.stop).start()
    full *= 1000
    with pytest.raises(NoSpace):
        reconciler._open(Beginning(Heads(fleet.repo.head, None), None))
    fleet.close()


def test_a_process_is_told_its_roles_and_what_to_reconcile(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    monkeypatch.setattr("os.execv", lambda _, words: ran.append(words))

    def said(*words: str) -> str:
        found = CliRunner().invoke(main, ["reconcile", *words])
        assert found.exit_code == 2
        return found.output

    assert "'status' is not all, loading or controllers,status,syncing" in said("--roles", "status")
    with monkeypatch.context() as patched:
        patched.setattr("os.isatty", lambda _: True)
        assert "nobody says what to reconcile" in said("--roles", "loading")
    assert CliRunner().invoke(main, ["reconcile", "--roles", "loading"]).exit_code == 0
    assert ran == [[sys.executable, "-m", MODULE, "loading"]]
