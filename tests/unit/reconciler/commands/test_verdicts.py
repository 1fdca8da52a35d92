"""What is said of a head to who pushed it."""

from __future__ import annotations

from pathlib import Path

from support.loadedfleet import A, B, LoadedFleet, configmap
from support.manyobjects import MANY

from apiserver.endpoints.pushhooks import VERDICTS
from apiserver.model.commits import own
from reconciler.commands.answers import told
from reconciler.commands.verdicts import Verdicts
from reconciler.loading.loader import Loaded
from reconciler.plan.pushedby import PUSH, SIGNATURE, PushedBy


def say(loaded: Loaded) -> list[str]:
    return list(told(loaded))


def test_what_is_good_is_told_by_workspace(fleet: LoadedFleet) -> None:
    assert say(fleet.commit({f"{A}/app.yaml": configmap(a="c"), f"{B}/app.yaml": configmap(a="c")})) == [
        f"commit {fleet.repo.head:.10} is served: 2 configured",
        "workspace root:a configured (1 object)",
        "workspace root:b configured (1 object)",
    ]
    found = fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/more.yaml": configmap("m"), f"{A}/app.yaml": None})
    assert say(found)[1:] == ["workspace root:a configured (2 objects)", "workspace root:a:kid created (1 object)"]
    assert say(fleet.commit({"README.md": "x"})) == [f"commit {fleet.repo.head:.10} is served"]


def test_who_pushed_is_told_where_it_is_known(fleet: LoadedFleet) -> None:
    loaded = fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    assert [*told(loaded, PushedBy("al\x1b[2Jice\nx", PUSH))][1] == "pushed by al\\x1b[2Jice\\nx"
    held = fleet.commit({"treeplane.yaml": "kind: ["})
    assert [*told(held, PushedBy("alice", SIGNATURE))][-1] == "pushed by alice (signed)"
    assert [*told(held, PushedBy.server(["ann", "b\x1b"]))][-1] == "pushed by treeplane for ann and b\\x1b"


def test_problems_are_listed(fleet: LoadedFleet) -> None:
    lines = say(fleet.commit({f"{B}/bad.yaml": "kind: [", f"{A}/app.yaml": configmap(a="c")}))
    assert lines[:3] == [
        f"commit {fleet.repo.head:.10} is served in part: 1 configured, 1 held",
        "workspace root:a configured (1 object)",
        "workspace root:b held:",
    ]
    assert lines[3].startswith(f"  {B}/bad.yaml:2:1: ")
    assert lines[4:] == ["What is held stays as it was served: mend it, and push again."]


def test_deletions_are_listed_line_by_line_with_one_command(fleet: LoadedFleet) -> None:
    lines = say(fleet.commit({**dict.fromkeys(MANY), B: None, f"{A}/app.yaml": None}))
    assert lines[0].endswith(" is served in part: 2 held")
    assert lines[1:3] == ["workspace root:a held:", "  what it deletes has to be allowed first"]
    start = lines.index(
        "root:a: spec.safety.maxDeletedShare allows 30 % of its 13 objects in one commit; this would be deleted:"
    )
    assert lines[start + 1] == "  root:a configmaps default/app"
    assert len([line for line in lines if line.startswith("  root:a configmaps ")]) == 13
    assert "root:b: root:b is protected: it has manifests; this would be deleted:" in lines
    assert lines[-2] == "To delete all of this, push:"
    message = lines[-1].rpartition(" -m ")[2].strip("'")
    fleet.repo.commit({}, f"Allow it\n\n{message}\n")
    loaded = fleet.load()
    assert say(loaded) == [
        f"commit {fleet.repo.head:.10} is served: 1 configured, 1 deleted",
        "workspace root:a configured (13 objects)",
        "workspace root:b deleted",
    ]
    assert fleet.held() == {}


def test_a_head_that_is_held_as_a_whole(fleet: LoadedFleet) -> None:
    lines = say(fleet.commit({"treeplane.yaml": "kind: ["}))
    assert lines[0] == f"commit {fleet.repo.head:.10} is not served:"
    assert lines[1].startswith("  treeplane.yaml:")


def test_what_waits_for_another_commit_says_so(fleet: LoadedFleet) -> None:
    head, large = own("1" * 40), own("2" * 40)
    waits = "waits for commit 2222222222, which is being loaded"
    assert say(Loaded(head, waits_for=large)) == [f"commit 1111111111 {waits}"]
    steps = fleet.commit({f"{A}/app.yaml": configmap(a="c")}).steps
    found = say(Loaded(head, steps=steps, waits_for=large))
    assert found == [
        f"commit 1111111111 is served in part, the rest of it {waits}: 1 configured",
        "workspace root:a configured (1 object)",
    ]


def test_nothing_in_a_file_name_reaches_the_terminal(fleet: LoadedFleet) -> None:
    lines = say(fleet.commit({f"{B}/bad\x1b[2J.yaml": "kind: ["}))
    assert not any("\x1b" in line for line in lines)


def test_files_come_and_go(fleet: LoadedFleet, tmp_path: Path) -> None:
    verdicts = Verdicts(tmp_path)
    verdicts.begin()
    for n in range(103):
        verdicts.say(Loaded(own(f"{n:040}")))
    names = sorted(path.name for path in (tmp_path / VERDICTS).iterdir())
    assert names == [f"{n:040}" for n in range(3, 103)]
    verdicts.end()
    assert not (tmp_path / VERDICTS).exists()
    verdicts.say(Loaded(own("0" * 40)))  # nobody is told, and nothing fails
