"""What `treeplane up` can be told: read, and handed on to those whom it concerns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.fleetrepo import plain_fleet

from reconciler import __main__ as program
from reconciler.commands import preparing, running
from reconciler.commands.line import serving
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.sourcesettings import follow_settings, trust
from reconciler.commands.up import up


def test_bounds_reach_the_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[Any] = []
    monkeypatch.setattr(serving, "up_command", told.append)
    options = ["--max-requests=7", "--max-requests-per-user=3", "--request-seconds=9", "--shutdown-seconds=1",
               "--event-seconds=60", f"--data-dir={tmp_path}"]  # fmt: skip
    assert CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), *options]).exit_code == 0
    [settings] = told
    assert settings.reconciling.events == 60
    runs: list[Any] = []
    monkeypatch.setattr(preparing, "listening", lambda *_: _Listener())
    monkeypatch.setattr(preparing, "resolve", lambda *_: preparing.Source(str(tmp_path), None, ()))
    monkeypatch.setattr(running, "_Run", lambda _, prepared, *__: runs.append(prepared.server) or _Listener())
    up(settings)
    [server] = runs
    assert (server.max_requests, server.max_requests_per_user, server.request_seconds, server.shutdown_seconds) == (
        7, 3, 9, 1,
    )  # fmt: skip


def test_a_key_that_cannot_be_used_is_told_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(preparing, "listening", lambda *_: _Listener())
    (tmp_path / "data" / "keys").mkdir(parents=True)
    (tmp_path / "data" / "keys" / "commits").write_text("no key")
    answer = CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), f"--data-dir={tmp_path / 'data'}"])
    assert answer.exit_code == 3
    assert "Put it back from a backup" in answer.output


class _Listener:
    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    def close(self) -> None: ...

    def run(self) -> None: ...


def test_the_reconciler_is_told_how_long_events_stay(tmp_path: Path) -> None:
    settings = ReconcileSettings(tmp_path, tmp_path, source="r", url="https://x", local_url="https://x", events=60)
    assert ReconcileSettings.from_json(settings.to_json()) == settings


def test_what_is_said_of_sources_reaches_the_reconciler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[Any] = []
    monkeypatch.setattr(serving, "up_command", told.append)
    options = ["--trust-sources=root:tenants", "--source-interval=30", f"--data-dir={tmp_path}"]
    options += ["--source-mib=64", "--sources-mib=128"]
    assert CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), *options]).exit_code == 0
    said = told[0].reconciling
    found = follow_settings(said)
    assert (found.interval, found.bounds.disk, found.together) == (30, 64 * 1024 * 1024, 128 * 1024 * 1024)
    assert [trust(said, path).trusted for path in ("root:tenants", "root:tenants:a", "root:tenants-b", "root")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert "`treeplane up --trust-sources root:shop`" in trust(said, "root:shop").remedy
    refused = CliRunner().invoke(
        program.main, ["up", str(plain_fleet(tmp_path)), "--trust-sources=https://example.com"]
    )
    assert refused.exit_code == 2


def test_trusted_targets_reach_the_reconciler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told: list[Any] = []
    monkeypatch.setattr(serving, "up_command", told.append)
    options = ["--trust-targets=root:infra", "--trust-targets", "root:shop:web", f"--data-dir={tmp_path}"]
    assert CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), *options]).exit_code == 0
    assert told[0].reconciling.trusted_targets == ("root:infra", "root:shop:web")
    refused = CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), "--trust-targets=10.0.0.0/8"])
    assert refused.exit_code == 2
    assert "is not the path of a workspace, like root:infra:locations" in refused.output
    settings = ReconcileSettings(
        tmp_path, tmp_path, source="r", url="https://x", local_url="https://x", trusted_targets=("root:infra",)
    )
    assert ReconcileSettings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (
            "t,system:workspace:root:shop,u",
            "1: system:workspace:root:shop is a workspace's name, which no token may carry",
        ),
        ('t,eve,u,"a,system:workspaces"', "1: system:workspaces is a workspace's name, which no token may carry"),
        ("t,eve", "1: expected token,user,uid"),
    ],
)
def test_tokens_that_no_worker_would_take_are_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, why: str
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it runs")

    monkeypatch.setattr(preparing, "listening", never)
    file = tmp_path / "tokens.csv"
    file.write_text(f"{line}\n")
    options = [f"--data-dir={tmp_path / 'data'}", f"--token-auth-file={file}"]
    answer = CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), *options])
    assert answer.exit_code != 0
    assert why in answer.output
    assert "Traceback" not in answer.output


def test_cas_that_no_worker_would_read_are_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("nothing")
    options = [f"--data-dir={tmp_path / 'data'}", f"--client-ca-file={tmp_path / 'ca.crt'}"]
    answer = CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), *options])
    assert answer.exit_code != 0
    assert f"--client-ca-file: {tmp_path / 'ca.crt'}: no certificates in PEM" in answer.output
