"""What `git push` is answered: what it changes, who is held and why; and whether it is taken at all."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.plane import Clone, Plane, PlaneError
from support.plane import clone as clone_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
WEB = "workspaces/root/shop/web"
CHECKOUT = "workspaces/root/shop/checkout/checkout.yaml"
REFUSED = r"refused, since it would hold 1 workspace \(spec.push of the served treeplane.yaml is Refuse\):"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """One that refuses, for tests that leave it as they need it."""
    with Plane(EXAMPLE, tmp_path_factory.mktemp("pushes") / "server" / "data") as server:
        clone = server.clone(tmp_path_factory.mktemp("first") / "fleet")
        clone.edit("treeplane.yaml", "spec:\n", "spec:\n  push: Refuse\n")
        clone.commit("refuse what would hold anybody")
        assert " is served" in clone.push()
        yield server


@pytest.fixture
def clone(server: Plane, tmp_path: Path) -> Clone:
    return server.clone(tmp_path / "fleet")


def hosted(server: Plane) -> Path:
    return server.data / "repo" / "fleet.git"


def head(clone: Clone) -> str:
    return clone.git("ls-remote", "origin", "refs/heads/main").split()[0]


def left(server: Plane) -> list[str]:
    """What lies in the hosted repository of pushes that are over."""
    git_dir = hosted(server)
    places = git_dir.glob("objects/*incoming*"), (git_dir / "treeplane" / "asked").iterdir()
    return [file.name for place in places for file in place]


def test_a_push_is_told_what_it_changes_and_one_that_holds_is_taken_all_the_same(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path
) -> None:
    server = plane(example_fleet)
    clone = server.clone(tmp_path / "fleet")
    clone.edit(CHECKOUT, "CURRENCY: EUR", "CURRENCY: CHF")
    clone.write("workspaces/root/shop/new/workspace.yaml", "")
    made = clone.commit("another currency, another team")
    assert clone.push().splitlines() == [
        f"treeplane: commit {made:.10} is served: 1 created, 1 configured",
        "treeplane: pushed by kcp-admin",
        "treeplane: workspace root:shop:checkout configured (1 object)",
        "treeplane: workspace root:shop:new created (1 object)",
    ]
    clone.write(f"{WEB}/bad.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndata: {a: 1}\n")
    made = clone.commit("a mistake")
    said = clone.push().splitlines()
    assert said[:3] == [
        f"treeplane: commit {made:.10} is served in part: 1 held",
        "treeplane: pushed by kcp-admin",
        "treeplane: workspace root:shop:web held:",
    ]
    assert said[3].startswith(f"treeplane:   {WEB}/bad.yaml:4")
    assert "mend it, and push again" in said[-1]
    assert head(clone) == made


def test_one_that_would_hold_is_refused_where_the_fleet_says_so(server: Plane, clone: Clone) -> None:
    before = head(clone)
    clone.write(f"{WEB}/bad\x1b[2J.yaml", "kind: [")
    clone.write(f"{WEB}/worse.yaml", "kind: [")
    # What it says of pushes itself makes no difference.
    clone.edit("treeplane.yaml", "push: Refuse", "push: Take")
    made = clone.commit("a mistake, and an excuse")
    with pytest.raises(PlaneError, match=REFUSED) as refused:
        clone.push()
    said = str(refused.value)
    assert "treeplane: workspace root:shop:web held:" in said
    assert f"treeplane:   {WEB}/bad\\x1b[2J.yaml: has a name that is not printable UTF-8 (rename it)" in said
    assert f"treeplane:   {WEB}/worse.yaml:2:1: YAML: " in said
    assert "\x1b[2J" not in said
    assert head(clone) == before
    git_dir = hosted(server)
    found = subprocess.run(["git", "-C", str(git_dir), "cat-file", "-e", made], capture_output=True, check=False)
    assert found.returncode != 0
    assert left(server) == []
    with pytest.raises(PlaneError, match="nothing of it could be served"):
        clone.git("reset", "--quiet", "--hard", before)
        clone.write("treeplane.yaml", "kind: [")
        clone.commit("no fleet at all")
        clone.push()
    assert head(clone) == before


def test_what_is_good_or_of_another_branch_is_taken(server: Plane, clone: Clone) -> None:
    clone.edit(CHECKOUT, "CURRENCY: ", "CURRENCY: X")
    made = clone.commit("a currency")
    said = clone.push()
    assert said.splitlines()[0].startswith(f"treeplane: commit {made:.10} is served: 1 configured")
    assert "without being judged" not in said
    clone.write(f"{WEB}/bad.yaml", "kind: [")
    clone.commit("a mistake")
    assert clone.push("origin", "HEAD:refs/heads/proposal", "HEAD:refs/tags/mistake") == ""
    assert left(server) == []


def test_what_has_to_be_allowed_can_be_in_the_same_push(server: Plane, clone: Clone) -> None:
    clone.write("workspaces/root/shop/gone/workspace.yaml", "")
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    clone.write("workspaces/root/shop/gone/a.yaml", config)
    clone.commit("a team")
    assert "workspace root:shop:gone created" in clone.push()
    clone.git("rm", "-rq", "workspaces/root/shop/gone")
    clone.commit("no team")
    with pytest.raises(PlaneError, match="To delete all of this, push:") as refused:
        clone.push()
    command = next(line for line in str(refused.value).splitlines() if "Allow-Delete" in line)
    clone.git("commit", "--quiet", "--allow-empty", "-m", "Allow it", "-m", command.rpartition(" -m ")[2].strip("' "))
    assert "workspace root:shop:gone deleted" in clone.push()


def test_two_pushes_at_once(server: Plane, tmp_path: Path) -> None:
    clones = [server.clone(tmp_path / name) for name in ("one", "two")]
    before = head(clones[0])
    for number, clone in enumerate(clones):
        clone.write(f"{WEB}/{number}.yaml", "kind: [")
        clone.commit("a mistake")

    def push(clone: Clone) -> str:
        with pytest.raises(PlaneError, match=REFUSED) as refused:
            clone.push()
        return str(refused.value)

    with ThreadPoolExecutor(2) as both:
        said = [*both.map(push, clones)]
    assert [f"{WEB}/{number}.yaml:2:1" in text for number, text in enumerate(said)] == [True, True]
    assert head(clones[0]) == before
    assert left(server) == []


def test_nobody_is_there_to_judge(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    """By path, as long as no server runs, or none that answers: it is taken, with that note. Held workspaces refuse
    nothing elsewhere then."""
    config = example_fleet / "treeplane.yaml"
    config.write_text(config.read_text().replace("spec:\n", "spec:\n  push: Refuse\n"))
    server = plane(example_fleet)
    clone = server.clone(tmp_path / "fleet")
    by_path = ("-c", f"safe.directory={hosted(server)}", "push", "--quiet", str(hosted(server)), "HEAD:main")
    clone.write(f"{WEB}/bad.yaml", "kind: [")
    clone.commit("a mistake")
    with pytest.raises(PlaneError, match=REFUSED):
        clone.git(*by_path)

    server.stop()
    assert "taken without being judged: no server is at work here" in _pushed(clone, hosted(server))
    server.start()
    clone.edit(CHECKOUT, "CURRENCY: EUR", "CURRENCY: CHF")
    clone.commit("another currency")
    assert "workspace root:shop:checkout configured (1 object)" in clone.push()

    # One that stands still, and one that was killed and left its files.
    with server.still("reconciler"):
        clone.write("README.md", "one")
        clone.commit("nothing")
        said = _pushed(clone, hosted(server))
    assert "taken without being judged: the server is away, or busy" in said
    assert "not served yet" in said
    asked = hosted(server) / "treeplane" / "asked"
    assert eventually(lambda: not any(file.name.endswith(".ask") for file in asked.iterdir()), 30)


def _pushed(clone: Clone, to: Path) -> str:
    done = subprocess.run(
        ["git", "-C", str(clone.folder), "push", str(to), "HEAD:main"], capture_output=True, text=True, check=True
    )
    return done.stderr


def test_the_setting_counts_once_it_is_served(plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path) -> None:
    server = plane(example_fleet)
    clone = server.clone(tmp_path / "fleet")
    clone.edit("treeplane.yaml", "spec:\n", "spec:\n  push: Refuse\n")
    clone.write(f"{WEB}/bad.yaml", "kind: [")
    clone.commit("from now on, and the last mistake")
    assert "workspace root:shop:web held:" in clone.push()
    clone.write(f"{WEB}/worse.yaml", "kind: [")
    clone.commit("one more")
    with pytest.raises(PlaneError, match=REFUSED):
        clone.push()
    clone.git("reset", "--quiet", "--hard", "HEAD~1")
    clone.edit("treeplane.yaml", "push: Refuse", "push: Take")
    clone.commit("not any more")
    assert " is served" in clone.push()
    clone.write(f"{WEB}/worse.yaml", "kind: [")
    clone.commit("one more")
    assert "workspace root:shop:web held:" in clone.push()
    web = json.loads(server.kubectl("get", "workspace", "web", "-o", "json", workspace="root:shop"))
    assert "worse.yaml" in json.dumps(web["status"])


def test_who_pushed_is_known_whoever_the_author_is(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    """Two users push under each other's author line; the status branch, `treeplane diff` and the answers say who it
    was. So it is after a restart that found the store gone."""
    tokens = tmp_path / "tokens.csv"
    tokens.write_text('alices-token,alice,1,"system:masters"\nbobs-token,bob,2,"system:masters"\n')
    server = plane(example_fleet, "--token-auth-file", str(tokens))
    ca = f"http.sslCAInfo={server.data / 'keys' / 'ca.crt'}"
    url = server.clone_words()[-2].removeprefix("https://")
    clones = {
        user: clone_of(["git", "clone", "--config", ca, f"https://{user}:{user}s-token@{url}", ""], tmp_path / user)
        for user in ("alice", "bob")
    }
    made: dict[str, str] = {}
    for user, other in (("alice", "bob"), ("bob", "alice")):
        work = clones[user]
        work.git("pull", "--quiet")
        work.edit(CHECKOUT, "CURRENCY: ", "CURRENCY: X")
        work.git("add", "--all")
        message = f"As {other}\n\nPushed-By: {head(work)} push {other}"
        work.git("commit", "--quiet", f"--author={other} <{other}@example.com>", "-m", message)
        made[user] = work.git("rev-parse", "HEAD").strip()
        assert f"treeplane: pushed by {user}" in work.push()

    def said() -> set[str]:
        work = clones["alice"]
        work.git("fetch", "--quiet", "origin")
        form = "--format=%(trailers:key=Pushed-By,valueonly)"
        log = work.git("log", "--first-parent", form, "origin/treeplane/status", check=False)  # "": it is not there yet
        return {line for line in log.splitlines() if line}

    seed = clones["alice"].git("rev-list", "--max-parents=0", "origin/main").strip()
    expected = {f"{commit} push {user}" for user, commit in made.items()} | {f"{seed} operator shard-admin"}
    eventually(lambda: said() == expected, 20)
    command = [sys.executable, "-m", "reconciler", "diff", f"{seed}..origin/main"]
    shown = subprocess.run(command, cwd=clones["alice"].folder, capture_output=True, text=True, check=False).stdout
    assert f"commit {made['alice']:.10} pushed by alice, author bob <bob@example.com>: As bob\n" in shown
    assert f"commit {made['bob']:.10} pushed by bob, author alice <alice@example.com>: As alice\n" in shown

    # By a path it is nobody; and what was said stays said.
    server.stop()
    work = clones["bob"]
    work.edit(CHECKOUT, "CURRENCY: ", "CURRENCY: Y")
    nobodys = work.commit("by a path")
    by_path = ("-c", f"safe.directory={hosted(server)}", "push", "--quiet", str(hosted(server)), "HEAD:main")
    work.git(*by_path)
    shutil.rmtree(server.data / "store")
    server.start()
    work.edit(CHECKOUT, "CURRENCY: ", "CURRENCY: Z")
    last = work.commit("and again")
    assert "treeplane: pushed by bob" in work.push()
    expected.add(f"{last} push bob")
    eventually(lambda: said() == expected, 20)
    assert nobodys not in str(said())
