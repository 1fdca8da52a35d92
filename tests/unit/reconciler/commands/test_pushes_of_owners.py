"""A push of whoever may not make it is refused before anything of it is taken."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleetrepo import TREEPLANE_YAML
from support.hosting import Hosting
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.moving import uid_of
from support.offering import OFFERED, UNBOUND, UNUSED, of_type
from support.ownedfleet import OWNED, OWNERS_YAML, granting
from support.widgets import binding

from apiserver.endpoints.pushhooks import MUST, REFUSES
from apiserver.model.storagenames import EXPORTS
from reconciler.commands.spool import PushQuestion

SIGNED_YAML = f"{TREEPLANE_YAML}spec: {{verification: {{mode: Every}}}}\n"


@pytest.fixture
def hosting(tmp_path: Path) -> Iterator[Hosting]:
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.commit(OWNED)
    made = Hosting(fleet, tmp_path / "work", OWNERS_YAML)
    yield made
    made.pushes.end()
    fleet.close()


def test_who_has_no_right_there_is_refused_with_the_file_and_nothing_stays(hosting: Hosting) -> None:
    hosting.begin()
    head = hosting.fleet.repo.head
    made = hosting.commit({f"{A}/app.yaml": configmap(a="new"), f"{B}/app.yaml": configmap(a="stolen")})
    taken, said = hosting.push(user="alice")
    assert not taken
    assert "treeplane: refused, since it may not be made so, as the served treeplane.yaml says:" in said
    assert (
        f"{B}/app.yaml: is touched by {made:.10}, pushed by alice: nobody gave alice the verb `push` on /git/fleet.git "
        "in root:b or a workspace above (leave it out, or ask whoever administers the workspace for that right)" in said
    )
    assert f"{A}/app.yaml" not in said
    assert hosting.fleet.repo.head == head
    assert not hosting.fleet.repo.repo.has(made)
    hosting.git("reset", "--quiet", "--hard", head)


def test_whoever_may_is_taken_and_written_down(hosting: Hosting) -> None:
    hosting.begin()
    made = hosting.commit({f"{A}/app.yaml": configmap(a="new")})
    taken, said = hosting.push(user="alice")
    assert taken, said
    record = hosting.judge.vouching.records.of(made)
    assert record is not None and record.pusher["username"] == "alice"


def test_the_author_of_the_commit_makes_no_difference(hosting: Hosting) -> None:
    hosting.begin()
    hosting.commit({f"{B}/app.yaml": configmap(a="stolen")})
    hosting.git("commit", "--quiet", "--amend", "--no-edit", "--author", "bob <bob@example.com>")
    taken, said = hosting.push(user="alice")
    assert not taken, said


def test_each_commit_counts_whatever_a_later_one_takes_back(hosting: Hosting) -> None:
    hosting.begin()
    hosting.commit({f"{B}/app.yaml": configmap(a="stolen")})
    hosting.commit({f"{B}/app.yaml": configmap()})
    taken, _ = hosting.push(user="alice")
    assert not taken


def test_a_right_that_comes_with_the_push_does_not_count_for_it(hosting: Hosting) -> None:
    hosting.begin()
    hosting.commit({f"{A}/pushers.yaml": OWNED[f"{A}/pushers.yaml"].replace("alice", "dave")})
    hosting.commit({f"{A}/app.yaml": configmap(a="new")})
    taken, said = hosting.push(user="dave")
    assert not taken
    assert said.count("nobody gave dave") == 2


def test_who_pushes_by_a_path_of_the_machine_is_nobody(hosting: Hosting) -> None:
    hosting.begin()
    hosting.commit({f"{A}/app.yaml": configmap(a="new")})
    taken, said = hosting.push()
    assert not taken
    assert "of whom it is not known who pushed it, since it is not signed" in said


def test_what_cannot_be_judged_is_refused(hosting: Hosting) -> None:
    """Nobody is at work, or at fault; a right that cannot be looked up is none."""
    hosting.begin()
    assert (hosting.git_dir / REFUSES).read_text().strip() == MUST
    hosting.pushes.end()
    hosting.commit({f"{A}/app.yaml": configmap(a="new")})
    taken, said = hosting.push(user="alice")
    assert not taken
    assert "refused, since it could not be judged: no server is at work here; try again" in said


@pytest.mark.parametrize("pusher", ["{", "[]", '{"username": 3}', '{"username":"alice","groups":"x"}'])
def test_a_pusher_that_is_none_is_nobody(hosting: Hosting, pusher: str) -> None:
    made = hosting.fleet.repo.commit({f"{A}/app.yaml": configmap(a="new")})
    parent = hosting.fleet.repo.repo.commit(made).parents[0]
    name = "tmp_objdir-incoming-AbCdEf"
    (hosting.git_dir / "objects" / name).mkdir()
    answer = hosting.judge.answer(PushQuestion(name, parent, made, "refs/heads/main", pusher))
    assert answer.startswith("refuse\n")
    assert "it is not known who pushed it" in answer


def test_a_large_push_is_asked_about_too(hosting: Hosting) -> None:
    """What is too large to be judged for what it comes to is not too large for whose it is."""
    hosting.begin()
    noise = subprocess.run(["head", "-c", "9000000", "/dev/urandom"], capture_output=True, check=True).stdout.hex()
    hosting.commit({f"{B}/noise.txt": noise})
    taken, said = hosting.push(user="alice")
    assert not taken
    assert "noise.txt: is touched" in said


def test_what_is_not_signed_is_refused_where_it_has_to_be(hosting: Hosting) -> None:
    hosting.fleet.commit({"treeplane.yaml": SIGNED_YAML})
    hosting.git("pull", "--quiet", str(hosting.git_dir), "main")
    hosting.begin()
    hosting.commit({f"{A}/app.yaml": configmap(a="new")})
    taken, said = hosting.push(user="alice")
    assert not taken
    assert "is not taken, since it is not signed" in said


def test_what_a_push_takes_of_another_workspace_is_refused_like_what_it_touches(hosting: Hosting) -> None:
    fleet = hosting.fleet
    fleet.commit({**OFFERED, f"{B}/bind.yaml": granting("bind", EXPORTS, "alice", only="gadgets")})
    hosting.git("pull", "--quiet", str(hosting.git_dir), "main")
    hosting.begin()
    head = fleet.repo.head
    made = hosting.commit({f"{A}/take.yaml": binding("root:b"), f"{A}/kid/workspace.yaml": of_type("gold", "root:b")})
    taken, said = hosting.push(user="alice")
    assert not taken
    for what in (
        f"{A}/take.yaml: APIBinding widgets, in {made:.10}, pushed by alice: {UNBOUND} (leave it out, or ask whoever",
        f"{A}/kid/workspace.yaml: Workspace kid, in {made:.10}, pushed by alice: {UNUSED} (leave it out, or ask",
    ):
        assert what in said
    assert fleet.repo.head == head
    hosting.git("reset", "--quiet", "--hard", head)
    hosting.commit({f"{A}/take.yaml": binding("root:b", wanted="gadgets")})
    taken, said = hosting.push(user="alice")
    assert taken, said


def test_what_moves_takes_nothing_new(hosting: Hosting) -> None:
    fleet = hosting.fleet
    kid = {f"{A}/kid/workspace.yaml": of_type("gold", "root:b"), f"{A}/kid/take.yaml": binding("root:b")}
    fleet.commit({**OFFERED, **kid})
    hosting.git("pull", "--quiet", str(hosting.git_dir), "main")
    hosting.begin()
    uid = uid_of(fleet, "root:a:kid")
    said_there = of_type("gold", "root:b").replace("spec:", f"metadata: {{uid: {uid}}}\nspec:")
    hosting.git("mv", f"{A}/kid", f"{A}/new")
    hosting.commit({f"{A}/new/workspace.yaml": said_there})
    taken, said = hosting.push(user="alice")
    assert taken, said
