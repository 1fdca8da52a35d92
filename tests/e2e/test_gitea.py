"""`treeplane comment` and the server's commit statuses against a real Gitea: it is as the contract suite's fake one
says. And the example's job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from support.fleetrepo import TREEPLANE_YAML
from support.giteaserver import GiteaServer
from support.loadedfleet import A, B, configmap
from support.plane import Clone, Plane

EXAMPLE = Path(__file__).parents[2] / "examples" / "ci" / "gitea" / "fleet.yml"


class Scene(NamedTuple):
    """`owner`, `bot`, `stranger`: tokens. The repository is private; the bot may read it."""

    server: GiteaServer
    owner: str
    bot: str
    stranger: str

    def pull_request(self, file: str) -> int:
        return self.server.pull_request(self.owner, "owner/fleet", file)

    def say(self, number: int, body: str) -> None:
        self.server.ask(self.stranger, "POST", f"/repos/owner/fleet/issues/{number}/comments", {"body": body})

    def said(self, number: int) -> list[tuple[str, str]]:
        found = self.server.ask(self.owner, "GET", f"/repos/owner/fleet/issues/{number}/comments")
        return [(each["user"]["login"], each["body"]) for each in found]

    def comment(self, number: int, text: str, *more: str, token: str = "") -> subprocess.CompletedProcess[str]:
        where = ["--forge", "gitea", "--url", self.server.url, "--repository", "owner/fleet"]
        return subprocess.run(
            [sys.executable, "-m", "reconciler", "comment", *where, "--pull-request", str(number), *more],
            input=text,
            env={**os.environ, "TREEPLANE_FORGE_TOKEN": token or self.bot},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture(scope="module")
def scene(gitea: GiteaServer) -> Scene:
    gitea.user("owner", admin=True)
    gitea.user("bot")
    gitea.user("stranger")
    owner = gitea.token("owner", "all")
    gitea.ask(
        owner, "POST", "/user/repos", {"name": "fleet", "auto_init": True, "default_branch": "main", "private": True}
    )
    for name in ("bot", "stranger"):
        gitea.ask(owner, "PUT", f"/repos/owner/fleet/collaborators/{name}", {"permission": "read"})
    bot, stranger = gitea.token("bot", "write:issue,read:user"), gitea.token("stranger", "write:issue")
    return Scene(gitea, owner, bot, stranger)


def test_one_comment_is_kept(scene: Scene) -> None:
    number = scene.pull_request("kept")
    scene.say(number, "<!-- treeplane diff fleet -->\nall is well")
    for _ in range(60):
        scene.say(number, "me too")
    for text, verb in (("1", "created"), ("1", "unchanged"), ("/two\n<b>", "configured"), ("/two\n<b>", "unchanged")):
        done = scene.comment(number, text, "-o", "json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["result"] == verb
    assert [body for who, body in scene.said(number) if who == "bot"] == ["<!-- treeplane diff fleet -->\n /two\n<b>"]
    assert scene.said(number)[0] == ("stranger", "<!-- treeplane diff fleet -->\nall is well")


def test_a_long_text_fits(scene: Scene) -> None:
    number = scene.pull_request("long")
    assert scene.comment(number, "é 🙂\n" * 30_000).returncode == 0
    assert scene.comment(number, "é 🙂\n" * 30_000).stdout.startswith(f"comment on owner/fleet#{number} unchanged")


def test_what_is_refused_says_what_to_do(scene: Scene) -> None:
    number = scene.pull_request("refused")
    blind = scene.comment(number, "one", token=scene.stranger)
    assert (blind.returncode, "read:user" in blind.stderr) == (4, True)
    assert scene.comment(number, "one", "--author", "stranger", token=scene.stranger).returncode == 0
    wrong = scene.comment(number, "one", token="0123456789" * 4)
    assert (wrong.returncode, "does not take the token" in wrong.stderr) == (4, True)
    nowhere = scene.comment(99_999, "one")
    assert (nowhere.returncode, "the repository and the number" in nowhere.stderr) == (4, True)
    for done in (blind, wrong, nowhere):
        assert not any(token in done.stdout + done.stderr for token in (scene.bot, scene.stranger, "0123456789" * 4))


def step(job: str, name: str) -> str:
    steps: list[dict[str, Any]] = yaml.safe_load(EXAMPLE.read_text())["jobs"][job]["steps"]
    return str(next(each for each in steps if each.get("name") == name)["run"])


def test_the_examples_steps(scene: Scene, tmp_path: Path) -> None:
    """All but the comparison between them: what is proposed is fetched, and each comment lands where it belongs."""
    numbers = [scene.pull_request("first"), scene.pull_request("second")]
    token = scene.server.token("bot", "read:repository,read:user,write:issue")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {
        "PATH": path, "HOME": str(tmp_path), "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "GITHUB_SERVER_URL": scene.server.url, "GITHUB_API_URL": f"{scene.server.url}/api/v1",
        "GITHUB_REPOSITORY": "owner/fleet", "TOKEN": token, "TREEPLANE_FORGE_TOKEN": token,
    }  # fmt: skip

    def run(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("git", "init", "--quiet")
    run("git", "remote", "add", "origin", f"{scene.server.url}/owner/fleet.git")
    run("bash", "-euc", step("diff", "Fetch what is proposed"))
    refs = run("git", "for-each-ref", "--format=%(refname)").split()
    assert {f"refs/remotes/pull/{number}" for number in numbers} <= set(refs)
    assert token not in run("cat", ".git/config")
    (tmp_path / "diffs").mkdir()
    for number in numbers:
        (tmp_path / "diffs" / f"{number}.md").write_text(f"of {number}")
    run("bash", "-euc", step("comment", "Comment"))
    for number in numbers:
        assert ("bot", f"<!-- treeplane diff fleet -->\nof {number}") in scene.said(number)


@pytest.mark.slow
def test_a_server_says_what_became_of_commits(
    scene: Scene, tmp_path: Path, plane: Callable[..., Plane], eventually: Callable[..., Any]
) -> None:
    """It serves the forge's repository, and its statuses stand on the commits there: held, mended, and nothing of who
    was not touched. After a restart, where another process says them, nothing is said again."""
    ask, owner = scene.server.ask, scene.owner
    ask(owner, "POST", "/user/repos", {"name": "served", "private": True})
    ask(owner, "PUT", "/repos/owner/served/collaborators/bot", {"permission": "write"})
    pusher = scene.server.token("bot", "write:repository")
    scheme, _, host = scene.server.url.partition("://")
    work = Clone(tmp_path / "work")
    work.folder.mkdir()
    work.git("init", "--quiet", "--initial-branch=main")
    work.git("remote", "add", "origin", f"{scheme}://owner:{owner}@{host}/owner/served.git")

    def push(path: str, text: str) -> str:
        work.write(path, text)
        commit = work.commit(path)
        work.push("--set-upstream", "origin", "main")
        return commit

    def stated(commit: str) -> dict[str, tuple[str, str]]:
        found = ask(owner, "GET", f"/repos/owner/served/commits/{commit}/status")["statuses"] or []
        return {each["context"]: (each["status"], each["description"]) for each in found}

    for path in (A, B):
        work.write(f"{path}/workspace.yaml", "")
        work.write(f"{path}/app.yaml", configmap())
    first = push("treeplane.yaml", TREEPLANE_YAML)
    folder = tmp_path / "server" / "data" / "keys" / "forges"
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(pusher)
    where = ["--forge", "gitea", "--forge-url", scene.server.url, "--forge-repository", "owner/served"]
    server = plane(f"{scheme}://bot:{pusher}@{host}/owner/served.git", "--poll", "1", "--workers", "1", *where)
    eventually(lambda: stated(first).get("treeplane", ("",))[0] == "success", 30)
    eventually(lambda: {"treeplane/root:a", "treeplane/root:b"} <= stated(first).keys(), 30)
    held = push(f"{A}/app.yaml", configmap() + "nonsense: [")
    eventually(lambda: stated(held).keys() == {"treeplane", "treeplane/root:a"}, 30)
    assert stated(held)["treeplane"] == ("failure", "1 held")
    state, why = stated(held)["treeplane/root:a"]
    assert (state, why.startswith(f"{A}/app.yaml:")) == ("failure", True)
    mended = push(f"{A}/app.yaml", configmap(c="d"))
    eventually(lambda: stated(mended).keys() == {"treeplane", "treeplane/root:a"}, 30)
    assert stated(mended) == {
        "treeplane": ("success", "1 configured"),
        "treeplane/root:a": ("success", "configured; not held any more"),
    }
    server.stop()
    before = len(ask(owner, "GET", f"/repos/owner/served/statuses/{held}"))
    server.arguments += ("--roles", "apart")
    server.start()
    last = push("README", "words")
    eventually(lambda: stated(last) == {"treeplane": ("success", "served; it changes no workspace")}, 30)
    assert len(ask(owner, "GET", f"/repos/owner/served/statuses/{held}")) == before
    said = server.output()
    assert pusher not in said
