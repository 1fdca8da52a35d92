"""`treeplane comment`, as a job runs it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from support.fakeforges import BOT, FAKES, TOKEN, FakeForge, Said, serving

from reconciler.__main__ import main
from reconciler.commands import comment as wiring
from reconciler.forges.wire import ForgePatience

VARIABLES = (
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "GITEA_ACTIONS",
    "FORGEJO_ACTIONS",
    "GITHUB_TOKEN",
    "GITLAB_TOKEN",
    "GITEA_TOKEN",
)


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run in CI themselves."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TREEPLANE_FORGE_TOKEN", TOKEN)
    monkeypatch.setattr(wiring, "PATIENCE", ForgePatience(sleep=lambda _: None))


@pytest.fixture(params=FAKES, ids=[each.forge for each in FAKES])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    with serving(request.param()) as found:
        yield found


def run(*arguments: str, text: str = "one\n") -> Result:
    return CliRunner().invoke(main, ["comment", *arguments], input=text)


def on(fake: FakeForge, *more: str, text: str = "one\n") -> Result:
    where = ["--forge", fake.forge, "--url", fake.url, "--repository", "shop/fleet", "--pull-request", "12"]
    return run(*where, *more, text=text)


def test_what_became_of_it_is_told(fake: FakeForge) -> None:
    sign = "!" if fake.forge == "gitlab" else "#"
    for text, verb in (("one", "created"), ("one", "unchanged"), ("two", "configured")):
        done = on(fake, text=text)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout.startswith(f"comment on shop/fleet{sign}12 {verb}")
        assert TOKEN not in done.output
    assert fake.bodies() == ["<!-- treeplane diff fleet -->\ntwo"]


def test_from_a_file_and_as_data(fake: FakeForge, tmp_path: Path) -> None:
    (tmp_path / "diff.md").write_bytes(b"one \xff")
    made = json.loads(on(fake, str(tmp_path / "diff.md"), "-o", "json", "--name", "eu").stdout)
    assert made["result"] == "created"
    assert made["comment"]["id"] == 1000
    assert fake.bodies() == ["<!-- treeplane diff eu -->\none �"]
    assert (
        yaml.safe_load(on(fake, str(tmp_path / "diff.md"), "-o", "yaml", "--name", "eu").stdout)["result"]
        == "unchanged"
    )


def test_more_of_ours_are_told(fake: FakeForge) -> None:
    for _ in range(2):
        fake.add(BOT, "<!-- treeplane diff fleet -->\none")
    done = on(fake)
    assert done.exit_code == 0
    assert "1001" in done.stderr
    assert "may be deleted" in done.stderr


def test_a_refusal_is_four(fake: FakeForge) -> None:
    fake.faults.append(("POST", Said(403, {"message": "no"})))
    done = on(fake)
    assert done.exit_code == 4
    assert "may not do that (403): no" in done.stderr
    assert "it needs" in done.stderr
    assert TOKEN not in done.output + done.stderr


@pytest.mark.parametrize("text", ["", " \n\0"])
def test_nothing_to_say_is_wrong_use(fake: FakeForge, text: str) -> None:
    done = on(fake, text=text)
    assert (done.exit_code, "nothing to say" in done.stderr) == (2, True)
    assert fake.writes() == []


def test_the_token_may_be_in_a_file(fake: FakeForge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TREEPLANE_FORGE_TOKEN")
    assert "there is no token" in on(fake).stderr
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    assert on(fake, "--token-file", str(tmp_path / "token")).exit_code == 0
    assert on(fake, "--token-file", str(tmp_path / "other")).exit_code == 2


def test_ci_tells_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(FAKES[-1]()) as fake:
        for name, value in {
            "GITHUB_ACTIONS": "true",
            "GITEA_ACTIONS": "true",
            "GITHUB_API_URL": f"{fake.url}/api/v1",
            "GITHUB_REPOSITORY": "shop/fleet",
            "GITHUB_TOKEN": "another",
        }.items():
            monkeypatch.setenv(name, value)
        assert run("--pull-request", "12").exit_code == 0
        monkeypatch.delenv("TREEPLANE_FORGE_TOKEN")
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        assert "unchanged" in run("--pull-request", "12").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--forge", "github"),
        ("--forge", "github", "--repository", "a/b"),
        ("--forge", "github", "--repository", "a/b", "--pull-request", "0"),
        ("--forge", "gitea", "--repository", "a/b", "--pull-request", "1"),
        ("--forge", "gitea", "--repository", "a/b", "--pull-request", "1", "--url", "http://git.example.org"),
        ("--forge", "github", "--repository", "a/b", "--pull-request", "1", "--name", "-->"),
        ("no-such-file", "--forge", "github", "--repository", "a/b", "--pull-request", "1"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_two_and_asks_nobody(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_a_token_is_no_argument() -> None:
    options = {name for each in wiring.comment.params for name in each.opts}
    assert "--token" not in options
