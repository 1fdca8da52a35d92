"""`treeplane validate --workspace`: one workspace as the whole fleet would judge it, at the cost of the part."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.happenings import EVENTS, PUSHES, Happening, History
from support.loadedfleet import BEGINNING, A, B, LoadedFleet, configmap
from support.widgets import binding, export, schema, widget

from reconciler.__main__ import main
from reconciler.commands.failure import Failure
from reconciler.commands.validate import Checked, validate_path, validate_revision
from reconciler.loading import inpart
from reconciler.loading.changeset import together
from reconciler.loading.loader import Loader
from reconciler.repository.objects import Repository

R = "workspaces/root"
_TREE, _BLOB = 2, 3


def manifest(kind: str, name: str, **spec: object) -> str:
    api = "tenancy.kcp.io/v1alpha1"
    return json.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name}} | ({"spec": spec} if spec else {}))


def told(checked: Checked) -> list[str]:
    return sorted(map(str, checked.problems))


def validated(fleet: LoadedFleet, workspace: str = "", rev: str = "main", base: str = "") -> Checked:
    return validate_revision(fleet.repo.path, rev, base, workspace)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole is never asked."""
    monkeypatch.setattr(inpart, "Everybody", Asked)


class Asked(AssertionError):
    pass


# -- what it says


@pytest.mark.usefixtures("alone")
def test_it_says_what_the_server_says_of_the_workspace_and_of_nobody_else(fleet: LoadedFleet) -> None:
    fleet.publish()
    fleet.repo.commit(
        {f"{A}/bad.yaml": "kind: [", f"{B}/x.yaml": "apiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n"}
    )
    a, b = validated(fleet, "root:a"), validated(fleet, "root:b")
    fleet.load()
    assert {"root:a": told(a), "root:b": told(b)} == fleet.held()
    assert (a.workspaces, b.workspaces, a.base.id) == (1, 1, fleet.repo.commits[0])
    assert validated(fleet, "root:nobody").workspaces == 0


@pytest.mark.usefixtures("alone")
def test_with_a_workspace_come_all_below_it(fleet: LoadedFleet) -> None:
    fleet.publish()
    fleet.repo.commit(
        {f"{A}/c/workspace.yaml": "", f"{A}/group/d/workspace.yaml": "", f"{A}/group/d/bad.yaml": "kind: ["}
    )
    found = validated(fleet, "root:a")
    assert (found.workspaces, len(found.problems)) == (3, 1)
    assert validated(fleet, "root:b").problems == ()


@pytest.mark.usefixtures("alone")
def test_whoever_it_relies_on_is_asked(fleet: LoadedFleet) -> None:
    """A provider of a provider of a type that the workspace has, none of them above it."""
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export(), f"{R}/c/deep/workspace.yaml": ""})
    fleet.publish()
    fleet.repo.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size="no number")})
    wrong = validated(fleet, "root:b")
    assert told(wrong)
    assert told(wrong) == told(validated(fleet))
    fleet.repo.commit({f"{B}/w.json": widget(size=1)})
    assert validated(fleet, "root:b").problems == ()
    fleet.repo.commit({f"{A}/bad.yaml": "kind: ["})
    assert validated(fleet, "root:b").problems == (), "of its provider nothing is told"


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("published", [True, False])
def test_a_twin_is_found_wherever_it_stands(fleet: LoadedFleet, published: bool) -> None:
    fleet.commit({f"{R}/far/away/x/workspace.yaml": "", f"{R}/far/other/y/workspace.yaml": ""})
    if published:
        fleet.publish()
    fleet.repo.commit({f"{R}/far/away/b/workspace.yaml": ""})
    found = validated(fleet, "root:b")
    assert told(found) == told(validated(fleet))
    assert "and so is" in told(found)[0]
    assert validated(fleet, "root:a").problems == ()


@pytest.mark.usefixtures("alone")
def test_a_twin_that_is_held_already_is_found_again(fleet: LoadedFleet) -> None:
    fleet.commit({f"{R}/far/b/workspace.yaml": ""})
    fleet.publish()
    fleet.repo.commit({f"{B}/app.yaml": configmap(a="c")})
    assert told(validated(fleet, "root:b")) == told(validated(fleet)) != []


@pytest.mark.usefixtures("alone")
def test_what_the_workspaces_above_have_counts(fleet: LoadedFleet) -> None:
    """A parent's manifests stand beside its children, and in directories that only group."""
    fleet.commit({f"{A}/group/types/lab.json": manifest("WorkspaceType", "lab"), f"{A}/group/c/workspace.yaml": ""})
    fleet.publish()
    types = {"d": "lab", "e": "none"}
    typed = {name: manifest("Workspace", name, type={"name": kind, "path": "root:a"}) for name, kind in types.items()}
    fleet.repo.commit({f"{A}/group/{name}/workspace.yaml": text for name, text in typed.items()})
    assert validated(fleet, "root:a:d").problems == ()
    assert told(validated(fleet, "root:a:e")) == told(validated(fleet)) != []


def test_a_directory_that_lost_its_workspace(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/c/workspace.yaml": "", f"{A}/c/app.yaml": configmap(), f"{B}/d/workspace.yaml": ""})
    fleet.publish()
    fleet.repo.commit({f"{A}/workspace.yaml": None, f"{B}/d/app.yaml": configmap()})
    whole = told(validated(fleet))
    assert whole
    assert told(validated(fleet, "root:a")) == whole
    assert told(validated(fleet, "root:a:c")) == []
    assert told(validated(fleet, "root:b:d")) == []


def test_what_everybody_has_a_word_in_is_asked_of_everybody(
    fleet: LoadedFleet,
) -> None:
    """Whether an export may go depends on all who bind it, and how many workspaces go on all that do."""
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    fleet.publish()
    fleet.repo.commit({f"{A}/export.json": None})
    found = validated(fleet, "root:a")
    assert told(found) == told(validated(fleet))
    assert found.refused.keys() == {"root:a"}
    fleet.repo.commit({B: None})
    gone = validated(fleet, "root:b")
    assert gone.refused.keys() == {"root:b"}


def test_files_that_are_not_committed(fleet: LoadedFleet, tmp_path: Path) -> None:
    for name, text in {**BEGINNING, f"{A}/bad.yaml": "kind: [", f"{B}/bad.yaml": "kind: ["}.items():
        file = tmp_path / "files" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    [problem] = validate_path(tmp_path / "files", "root:b").problems
    assert problem.path == f"{B}/bad.yaml"


def test_what_is_no_path(fleet: LoadedFleet) -> None:
    with pytest.raises(Failure, match="no path of a workspace"):
        validated(fleet, "workspaces/root/a")


# -- what it costs


class Counted:
    trees = 0
    blobs = 0


def counted(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> Counted:
    count, raw = Counted(), Repository.raw

    def read(repo: Repository, object_id: str, expected: int) -> bytes:
        count.trees += expected == _TREE
        count.blobs += expected == _BLOB
        return raw(repo, object_id, expected)

    with monkeypatch.context() as patched:
        patched.setattr(Repository, "raw", read)
        do()
    return count


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("place", [f"{R}/w{{n}}", f"{R}/{{g}}/w{{n}}"], ids=["flat", "spread"])
def test_it_reads_the_same_however_many_workspaces_there_are(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for many in (8, 300):
        fleet = LoadedFleet(tmp_path / f"fleet{many}")
        where = [place.format(n=n, g=n % 4) for n in range(many)]
        others = {
            f"{d}/{name}": text for d in where for name, text in (("workspace.yaml", ""), ("a.yaml", configmap(d=d)))
        }
        fleet.begin({f"{A}/schema.json": schema(), f"{A}/export.json": export(), **others})
        fleet.publish()
        fleet.repo.commit({f"{where[3]}/binding.json": binding("root:a"), f"{where[3]}/w.json": widget(size="none")})
        fleet.close()

        def check(fleet: LoadedFleet = fleet) -> None:
            assert validated(fleet, "root:w3").problems

        costs.append(counted(monkeypatch, check))
    few, lots = costs
    assert lots.trees <= few.trees, "what is wide is remembered"
    assert lots.blobs == few.blobs


# -- held against the whole

HISTORIES = st.lists(
    st.tuples(st.sampled_from([*PUSHES, *EVENTS]), st.integers(0, 23), st.booleans()), min_size=1, max_size=10
)
CHANGES = st.lists(st.tuples(st.sampled_from([*PUSHES, "allow"]), st.integers(0, 23)), min_size=1, max_size=4)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=HISTORIES, changes=CHANGES)
def test_a_part_says_of_itself_what_the_whole_says(
    tmp_path_factory: pytest.TempPathFactory, history: History, changes: list[tuple[str, int]]
) -> None:
    """Of a fleet that is recorded, with commits on top of that."""
    fleet = LoadedFleet(tmp_path_factory.mktemp("part") / "fleet")
    try:
        happening = Happening(fleet)
        happening.begin()
        for name, number, load in history:
            happening.happen(name, number, load=load)
        fleet.load()
        fleet.publish()
        for name, number in changes:
            happening.happen(name, number, load=False)
        assert_parts_agree(fleet)
    finally:
        fleet.close()


def assert_parts_agree(fleet: LoadedFleet) -> None:
    said: dict[str, list[str]] = {}
    load = Loader.load

    def listened(*args: object) -> object:
        loaded = load(*args)  # type: ignore[arg-type]
        said.clear()
        said.update({path: sorted(map(str, {*why})) for path, why in together(loaded.steps).held.items()})
        return loaded

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Loader, "load", listened)
        whole = validated(fleet)
        held = dict(said)
    everywhere = set(told(whole)) - {text for found in held.values() for text in found}
    for path in ["root", "root:a", "root:b", "root:c", "root:d", "root:b:e"]:
        inside = {p: texts for p, texts in held.items() if p == path or p.startswith(f"{path}:")}
        expected = sorted({*everywhere, *(text for texts in inside.values() for text in texts)})
        found = validated(fleet, path)
        assert told(found) == expected, path
        assert {p: r.digest for p, r in found.refused.items()} == {
            p: r.digest for p, r in whole.refused.items() if p in inside
        }, path


def test_on_the_command_line(fleet: LoadedFleet) -> None:
    fleet.publish()
    fleet.repo.commit({f"{B}/bad.yaml": "kind: ["})
    for workspace, code in (("root:a", 0), ("root:b", 1), ("root", 1)):
        done = CliRunner().invoke(main, ["validate", str(fleet.repo.path), "--rev", "main", "-w", workspace])
        assert done.exit_code == code, done.output
    assert "1 error in 4 workspaces" in done.output
