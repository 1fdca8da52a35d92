"""Who is told of commits: the settings say it, and from a commit to its status all is wired."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.fakeforges import TOKEN, FakeGitea, Said, serving
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.notified import FakeReceiver, receiving

from apiserver.model.commits import NONE
from apiserver.registry import announced
from reconciler import __main__ as program
from reconciler.commands import preparing as command
from reconciler.commands.announcing import Announcing
from reconciler.commands.line import serving as typed
from reconciler.commands.settings import ReconcileSettings
from reconciler.controllers.feed import Feed
from reconciler.forges.notification import signature
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import read_fleet
from reconciler.loading.outcomes import Outcomes

Eventually = Callable[..., Any]
BROKEN = "x: ["


class Told:
    """A fleet that is loaded, and a forge and a webhook that are told of it, as in a server."""

    def __init__(self, directory: Path, forge: FakeGitea, hook: FakeReceiver) -> None:
        self.fleet, self.forge, self.hook = LoadedFleet(directory), forge, hook
        keys = self.fleet.keys / "forges"
        keys.mkdir(parents=True)
        for name in ("token", "webhook-secret"):
            (keys / name).write_text(f"{TOKEN}\n")
            (keys / name).chmod(0o600)
        self.settings = ReconcileSettings(
            directory, self.fleet.keys, source=str(self.fleet.repo.path), url="u", local_url="u",
            forge="gitea", forge_url=forge.url, forge_repository="shop/fleet", notify_url=hook.url,
        )  # fmt: skip
        self.notes: list[str] = []
        self.start()

    def start(self) -> None:
        self.outcomes = Outcomes(self.fleet.store, self.fleet.mirror.repository, "main", wanted=self.settings.announces)
        self.outcomes.begin(NONE)
        self.feed = Feed(self.fleet.store)
        self.announcing = Announcing(self.settings, self.fleet.store, self.feed, self.notes.append)
        self.announcing.start()
        self.feed.start()

    def noted(self, who: str, commit: str) -> int:
        """Of how many things it is noted that somebody was told them of a commit; what was said and is not noted is
        said again by the next start."""
        return len(announced.told(self.fleet.store, who, commit))

    def stop(self) -> None:
        self.feed.stop()
        self.announcing.stop()

    def commit(self, files: dict[str, str]) -> str:
        self.outcomes.loaded(self.fleet.commit(files))
        return self.fleet.repo.head


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    with serving(FakeGitea()) as forge, receiving() as hook:
        assert isinstance(forge, FakeGitea)
        made = Told(tmp_path / "fleet", forge, hook)
        yield made
        made.stop()
        made.fleet.close()


def test_from_a_commit_to_its_status(told: Told, eventually: Eventually) -> None:
    told.outcomes.loaded(told.fleet.begin())
    first = told.fleet.repo.head
    eventually(lambda: len(told.forge.newest(first)) == 4)
    held = told.commit({f"{A}/app.yaml": BROKEN})
    eventually(lambda: told.forge.newest(held) == {"treeplane": "failure", "treeplane/root:a": "failure"})
    other = told.commit({f"{B}/app.yaml": configmap(c="d")})
    eventually(lambda: told.forge.newest(other) == {"treeplane": "success", "treeplane/root:b": "success"})
    mended = told.commit({f"{A}/app.yaml": configmap(c="e")})
    eventually(lambda: told.forge.newest(mended) == {"treeplane": "success", "treeplane/root:a": "success"})
    eventually(lambda: [got.document["commit"] for got in told.hook.got] == [first, held, other, mended])
    assert [got.document["state"] for got in told.hook.got] == ["success", "failure", "success", "success"]
    assert all(got.headers["x-treeplane-signature-256"] == signature(got.body, TOKEN) for got in told.hook.got)
    eventually(lambda: told.noted("forge", mended) == 2 and told.noted("webhook", mended) == 1)
    told.stop()
    asked, got = len(told.forge.asked), len(told.hook.got)
    told.start()
    told.outcomes.loaded(told.fleet.load())
    last = told.commit({"README": "words"})
    eventually(lambda: told.forge.newest(last) == {"treeplane": "success"})
    eventually(lambda: len(told.hook.got) == got + 1)
    assert len(told.forge.asked) == asked + 1, "a restart says nothing again"
    assert told.notes == []


def test_a_webhook_that_is_away_keeps_no_forge_waiting(told: Told, eventually: Eventually) -> None:
    told.hook.silent = True
    told.outcomes.loaded(told.fleet.begin())
    eventually(lambda: told.hook.got)
    held = told.commit({f"{A}/app.yaml": BROKEN})
    eventually(lambda: told.forge.newest(held) == {"treeplane": "failure", "treeplane/root:a": "failure"})
    told.hook.over.set()


def test_a_forge_that_fails_is_told_once_and_without_the_token(told: Told, eventually: Eventually) -> None:
    told.forge.faults += [("POST", Said(500, {"message": f"Bearer {TOKEN}"}))]
    told.outcomes.loaded(told.fleet.begin())
    eventually(lambda: len(told.forge.newest(told.fleet.repo.head)) == 4)
    eventually(lambda: len(told.notes) == 2)
    assert [text.partition(":")[0] for text in told.notes] == [
        "the forge is not told what becomes of commits",
        "the forge is told again what becomes of commits",
    ]
    assert TOKEN not in "".join(told.notes) + told.settings.to_json() + repr(told.settings)


def test_who_is_told_no_more_fails_no_more(told: Told, eventually: Eventually) -> None:
    store = told.fleet.store
    eventually(lambda: announced.failing(store) == {"forge": "", "webhook": ""})
    told.stop()
    told.settings = replace(told.settings, forge=None)
    told.start()
    eventually(lambda: announced.failing(store) == {"webhook": ""})


def test_nothing_in_git_says_where_a_token_goes(tmp_path: Path) -> None:
    """Not even a field that nobody reads: it is refused."""
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.begin()
    said = fleet.repo.files(fleet.repo.head)["treeplane.yaml"]
    fleet.repo.commit({"treeplane.yaml": f"{said}\nforge: {{url: 'https://evil.example.org'}}\n"})
    repo = fleet.mirror.repository
    fleet.mirror.refresh()
    with pytest.raises(BadFile, match="forge"):
        read_fleet(repo, repo.commit(fleet.repo.head).tree)
    fleet.close()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--forge=gitea", "--forge-repository=shop/fleet"], "a Gitea may be anywhere"),
        (["--forge=github"], "which repository of the forge is it?"),
        (["--forge=github", "--forge-repository=../fleet"], "is no repository of a github"),
        (["--forge=sourcehut"], "is not one of 'github', 'gitlab', 'gitea'"),
        (["--forge-repository=shop/fleet"], "which forge is it?"),
        (["--forge-url=http://git.example.org"], "is not secured"),
        (["--notify-url=https://u:pass-word@hooks.example.org"], "a user or a password"),
        (["--forge-target-url=javascript:alert(1)"], "is no URL"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, options: list[str], why: str
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it runs")

    monkeypatch.setattr(command, "listening", never)
    done = CliRunner().invoke(program.main, ["up", str(tmp_path), f"--data-dir={tmp_path / 'data'}", *options])
    assert done.exit_code == 2, done.output
    shown = " ".join((done.output + str(getattr(done.exception, "text", ""))).split())
    assert why in shown, shown
    assert "pass-word" not in shown


def test_who_is_told_reaches_the_reconciler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: list[Any] = []
    monkeypatch.setattr(typed, "up_command", found.append)
    options = ["--forge=gitlab", "--forge-repository=7", "--notify-url=https://hooks.example.org/x/"]
    assert CliRunner().invoke(program.main, ["up", str(tmp_path), f"--data-dir={tmp_path}", *options]).exit_code == 0
    reconciling = found[0].reconciling
    assert (reconciling.forge, reconciling.forge_repository, reconciling.announces) == ("gitlab", "7", True)
    assert "hooks.example.org" not in repr(reconciling)
    assert CliRunner().invoke(program.main, ["up", str(tmp_path), f"--data-dir={tmp_path}"]).exit_code == 0
    assert not found[1].reconciling.announces
