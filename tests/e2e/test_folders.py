"""A fleet in a folder of a monorepo, by the commands of docs/repositories.md, and what is pushed."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Plane, PlaneError, environment

ROOT = Path(__file__).parents[2]
_PAGE = (ROOT / "docs" / "repositories.md").read_text()
_SECTION = re.split(r"^## ", _PAGE.partition("\n## A folder of a repository\n")[2], flags=re.MULTILINE)[0]
[BEGIN, LOOK, MOVE] = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", _SECTION, re.DOTALL)]
FOLDER = "fleets/prod"
CHECKOUT = f"{FOLDER}/workspaces/root/shop/checkout/checkout.yaml"


def typed(line: str, at: Path, code: int = 0) -> str:
    env = environment(PATH=f"{COMMAND.parent}:/usr/bin:/bin", GIT_AUTHOR_NAME="t", GIT_AUTHOR_EMAIL="t@example.com",
                      GIT_COMMITTER_NAME="t", GIT_COMMITTER_EMAIL="t@example.com")  # fmt: skip
    done = subprocess.run(["sh", "-c", line], cwd=at, env=env, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture
def mono(tmp_path: Path) -> Path:
    """A repository of somebody else's."""
    top = tmp_path / "mono"
    (top / "services").mkdir(parents=True)
    (top / "services" / "main.go").write_text("package main\n")
    (top / ".gitignore").write_text(".treeplane/\n")
    typed("git init --quiet --initial-branch main . && git add . && git commit --quiet -m services", top)
    return top


@pytest.fixture
def up(mono: Path, tmp_path: Path) -> Iterator[Callable[[str], Plane]]:
    """Starts what a line of the page starts."""
    started: list[Plane] = []

    def start(line: str) -> Plane:
        words = shlex.split(line)
        assert words[:3] == ["treeplane", "up", "."]
        for each in started:
            each.stop()
        started.append(Plane(mono, tmp_path / "server" / "data", *words[3:]))
        started[-1].start()
        return started[-1]

    yield start
    for each in started:
        each.stop()


def test_the_page_as_it_is_printed(mono: Path, up: Callable[[str], Plane], eventually: Any) -> None:
    assert BEGIN[0] == "cd mono"
    said = typed(BEGIN[1], mono)
    assert "git add fleets/prod .gitignore" in said
    assert BEGIN[3] in said.replace(str(COMMAND), "treeplane").replace("./", "")
    typed(BEGIN[2], mono)
    server = up(BEGIN[3])
    assert "root:team" in server.workspaces()
    work = server.data.parent / "treeplane.log"
    assert "held" not in work.read_text()

    # What is none of the fleet's is the newest commit at once.
    (mono / "services" / "main.go").write_text("package other\n")
    typed("git add services && git commit --quiet -m 'not the fleet'", mono)
    head = typed("git rev-parse HEAD", mono).strip()
    status = [str(COMMAND), "status", "--kubeconfig", str(server.kubeconfig)]
    eventually(lambda: f"{head:.10}" in typed(shlex.join(status), mono), 20)

    for line in LOOK:
        said = typed(line, mono)
        assert "no errors" in said or line.startswith(("treeplane diff", "treeplane log", "treeplane grant", "cd "))
        assert "fleets/prod/workspaces/root/team/_access/user-ann.yaml created (dry run)" in said or "grant" not in line
    [team] = [file for file in (mono / FOLDER).rglob("*.yaml") if "kind: Deployment" in file.read_text()]
    file = team.relative_to(mono).as_posix()
    assert LOOK[5].startswith("cd ")
    assert all(file in typed(line, mono) for line in (LOOK[3], LOOK[5]))

    # Gone, it is held; where it was moved to, it goes on as it was.
    typed(MOVE[0], mono)
    eventually(lambda: "fleets/prod: is missing; nothing is deleted" in server.output(), 20)
    uid = server.objects("root:team")
    server = up(MOVE[1])
    eventually(lambda: server.objects("root:team").keys() == uid.keys(), 20)
    kept = {name: each["metadata"]["uid"] for name, each in server.objects("root:team").items()}
    assert kept == {name: each["metadata"]["uid"] for name, each in uid.items()}
    server.stop()
    with pytest.raises(PlaneError, match=r"stands in folder fleets/live.*and not in folder fleets/prod"):
        up(BEGIN[3])


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Plane]:
    """Of a directory with a fleet in a folder: the server hosts all of it."""
    top = tmp_path / "mono"
    shutil.copytree(ROOT / "examples" / "fleet-repo", top / FOLDER)
    (top / "README.md").write_text("of everybody\n")
    with Plane(top, tmp_path / "server" / "data", "--path", FOLDER) as server:
        yield server


def test_what_is_pushed_and_written_stands_below_the_folder(hosted: Plane, tmp_path: Path, eventually: Any) -> None:
    clone = hosted.clone(tmp_path / "clone")
    clone.edit(CHECKOUT, "CURRENCY: EUR", "CURRENCY: CHF")
    clone.edit(f"{FOLDER}/treeplane.yaml", "  writes: ReadOnly", "  writes: Commit\n  push: Refuse")
    clone.commit("another currency")
    assert "workspace root:shop:checkout configured (1 object)" in clone.push()
    refused = hosted.kubectl("create", "configmap", "new", "--from-literal=a=b", workspace="root:shop:checkout")
    assert "created" in refused
    clone.git("pull", "--quiet")
    [written] = [line for line in clone.git("show", "--name-only", "--format=").splitlines() if line]
    assert written.startswith(f"{FOLDER}/workspaces/root/shop/checkout/")

    clone.write(f"{FOLDER}/workspaces/root/shop/web/bad.yaml", "kind: ConfigMap\n")
    clone.commit("what would hold")
    with pytest.raises(Exception, match=f"{FOLDER}/workspaces/root/shop/web/bad.yaml:1"):
        clone.push()
    clone.git("reset", "--quiet", "--hard", "origin/main")
    clone.write("workspaces/root/shop/web/bad.yaml", "kind: ConfigMap\n")
    clone.commit("nothing to the fleet")
    assert " is served" in clone.push()

    first = clone.git("rev-list", "--max-parents=0", "origin/main").strip()
    then = hosted.get(f"/commits/{first}/clusters/root:shop:checkout/api/v1/namespaces/checkout/configmaps/checkout")
    assert then["data"]["CURRENCY"] == "EUR"
    assert then["metadata"]["annotations"]["treeplane.dev/source-path"] == CHECKOUT

    clone.edit(CHECKOUT, "CURRENCY: CHF", "CURRENCY: USD")
    clone.git("checkout", "--quiet", "-b", "review")
    clone.commit("for review")
    review = json.loads(typed("treeplane diff main...review -o json || true", clone.folder))
    assert CHECKOUT in json.dumps(review)
