"""What a rendering is made of: what its kustomizations name, and nothing that is not known to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML

from reconciler.layout import inputs
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.inputs import InputFinder, Inputs, files_of, states, states_there
from reconciler.layout.tree import WorkspaceTree
from reconciler.repository.objects import TreeEntry

Planted = Callable[..., WorkspaceTree]
Files = dict[str, bytes]
A, B = "workspaces/root/a", "workspaces/root/b"
K = f"{A}/k"
MARKER = f"{K}/kustomization.yaml"
SHARED = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases, parts]}}}}\n".encode()
BEGIN: Files = {
    "treeplane.yaml": SHARED,
    f"{A}/workspace.yaml": b"",
    f"{B}/workspace.yaml": b"",
    f"{B}/base/kustomization.yaml": b"",
    f"{A}/child/workspace.yaml": b"",
    f"{A}/child/x.yaml": b"",
    f"{A}/base/x.yaml": b"",
    f"{K}/x.yaml": b"",
    "bases/web/x.yaml": b"",
    "bases/db/x.yaml": b"",
    "private/x.yaml": b"",
}


def naming(*resources: str) -> bytes:
    return yaml.safe_dump({"resources": [*resources]}).encode()


def found(tree: WorkspaceTree, path: str = MARKER) -> Inputs:
    place = tree.find("root:a")
    assert place is not None
    return InputFinder().of(tree, place, path)


def seen(tree: WorkspaceTree, path: str = MARKER) -> set[str]:
    return {file for file, _ in files_of(tree, found(tree, path))}


def test_what_names_nothing_above_sees_itself_alone(planted: Planted) -> None:
    tree = planted({**BEGIN, MARKER: naming("x.yaml", "sub"), f"{K}/sub/y.yaml": b"", f"{K}/notes.txt": b""})
    assert seen(tree) == {MARKER, f"{K}/x.yaml", f"{K}/sub/y.yaml", f"{K}/notes.txt"}
    assert found(tree).elsewhere == ()


def test_what_is_named_is_seen_and_no_more(planted: Planted) -> None:
    tree = planted({**BEGIN, MARKER: naming("../base", "../../../../bases/web")})
    assert seen(tree) == {MARKER, f"{K}/x.yaml", f"{A}/base/x.yaml", "bases/web/x.yaml"}
    assert found(tree).elsewhere == ("bases/web", f"{A}/base")


def test_what_is_named_names_more(planted: Planted) -> None:
    more = {"bases/web/kustomization.yaml": naming("../db", "../../parts"), "parts/p.yaml": b"", "parts/sub/q": b""}
    tree = planted({**BEGIN, **more, MARKER: naming("../../../../bases/web")})
    assert seen(tree) - {MARKER, f"{K}/x.yaml"} == {
        "bases/web/x.yaml",
        "bases/web/kustomization.yaml",
        "bases/db/x.yaml",
        "parts/p.yaml",
        "parts/sub/q",
    }


def test_what_is_nobodys_to_see_is_named_and_not_seen(planted: Planted) -> None:
    """Other workspaces' files, a child's, what is not shared, what is above the repository, and workspace.yaml."""
    names = [
        "../../b/base",
        "../child",
        "../../../../private",
        "../../../../../etc",
        "../../../..",
        "/etc/passwd",
        "..",
    ]
    tree = planted({**BEGIN, MARKER: naming(*names)})
    assert seen(tree) == {MARKER, f"{K}/x.yaml", f"{A}/base/x.yaml"}
    assert found(tree).outside == ("private", f"{A}/child", f"{B}/base")


def test_a_chart_sees_itself_alone(planted: Planted) -> None:
    tree = planted({**BEGIN, f"{K}/Chart.yaml": b"", f"{K}/kustomization.yml": naming("../base")})
    assert seen(tree, f"{K}/Chart.yaml") == {f"{K}/{name}" for name in ("Chart.yaml", "kustomization.yml", "x.yaml")}


def test_a_path_that_is_not_written_out_is_not_one(planted: Planted) -> None:
    tree = planted({**BEGIN, MARKER: b'resources: ["\\x2e\\x2e/base"]'})
    assert found(tree).elsewhere == ()
    assert planted({**BEGIN, MARKER: b"resources: ["}) and found(planted({**BEGIN, MARKER: b"a: ["})).elsewhere == ()


def test_what_is_named_twice_is_seen_once(planted: Planted) -> None:
    tree = planted({**BEGIN, MARKER: naming("../../../../bases/web", "../../../../bases", "..")})
    files = [file for file, _ in files_of(tree, found(tree))]
    assert len(files) == len(set(files))
    assert {file for file in files if file.startswith("bases")} == {"bases/web/x.yaml", "bases/db/x.yaml"}
    assert {MARKER, f"{A}/base/x.yaml"} <= {*files}


def test_what_has_too_many_files_says_so(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_MOST", 3)
    tree = planted({**BEGIN, MARKER: naming("../base"), **{f"{K}/{n}": b"" for n in range(4)}})
    assert found(tree).fault == "what it names has more than 3 files"


def test_what_many_name_is_looked_through_once_and_not_to_its_end(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "_MOST", 20)
    many = {f"{A}/big/{number}.yaml": b"" for number in range(100)}
    markers = {f"{A}/k{number}/kustomization.yaml": naming("../big") for number in range(5)}
    tree, looked = planted({**BEGIN, **many, **markers}), list[str]()
    place, finder, all_below = tree.find("root:a"), InputFinder(), tree.all_below

    def counting(directory: str) -> Iterator[tuple[str, TreeEntry]]:
        for found in all_below(directory):
            looked.append(found[0])
            yield found

    monkeypatch.setattr(tree, "all_below", counting)
    assert place is not None
    faults = {finder.of(tree, place, marker).fault for marker in markers}
    assert faults == {"what it names has more than 20 files"}
    assert len([path for path in looked if "/big/" in path]) == 21


def test_kustomizations_are_looked_through_up_to_a_size(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "_MOST_BYTES", 2 * 1024 * 1024)
    large = naming("../base") + b"#" * 1024 * 1000
    tree = planted({**BEGIN, MARKER: b"", **{f"{K}/{n}/kustomization.yaml": large for n in range(2)}})
    assert found(tree).fault == ""
    more = planted({f"{K}/{n}/kustomization.yaml": large for n in range(2, 9)}, tree)
    assert found(more).fault == "what it names has kustomizations of more than 2 MiB"


# --- in a tenant's repository

KID = "deploy/in/kid"
THERE: Files = {
    "deploy/in/workspace.yaml": b"",
    "deploy/in/base/x.yaml": b"",
    f"{KID}/workspace.yaml": b"",
    f"{KID}/k/kustomization.yaml": b"",
    f"{KID}/own/x.yaml": b"",
    f"{KID}/deep/workspace.yaml": b"",
    f"{KID}/deep/x.yaml": b"",
    "deploy/two/workspace.yaml": b"",
    "deploy/two/base/x.yaml": b"",
    "deploy/base/x.yaml": b"",
    "deploy/base/inner/workspace.yaml": b"",
    "deploy/base/inner/y.yaml": b"",
    "bases/x.yaml": b"",
    "treeplane.yaml": SHARED,
}
SEEN = {"../../base": "deploy/in/base", "../../../base": "deploy/base", "../own": f"{KID}/own"}
UNSEEN = ["../../../two/base", "../../../two", "../deep", "../../../../bases", "../../..", "../..", "../../../.."]


def seen_there(planted: Planted, *names: str, border: str = "deploy") -> tuple[set[str], Inputs]:
    marker = f"{KID}/k/kustomization.yaml"
    fleets = planted({**THERE, marker: naming(*names)})
    tree = ContentTree(fleets.repo, fleets.tree_id, path=border)
    place = tree.content("root:a:in:kid", KID)
    assert place is not None
    made = InputFinder().of(tree, place, marker)
    return {file for file, _ in files_of(tree, made)} - {marker}, made


@pytest.mark.parametrize("name", SEEN)
def test_within_a_source_it_sees_what_it_stands_in(planted: Planted, name: str) -> None:
    assert seen_there(planted, name)[0] == {f"{SEEN[name]}/x.yaml"}


@pytest.mark.parametrize("name", UNSEEN)
def test_within_a_source_no_other_workspaces_files_are_seen(planted: Planted, name: str) -> None:
    """Nor what is outside of its path, or around the workspace itself."""
    files, made = seen_there(planted, name)
    assert (files, len(made.seen)) == (set(), 1)


def test_a_border_makes_what_is_outside_of_it_unseen(planted: Planted) -> None:
    assert seen_there(planted, "../../../base", "../own", border=KID)[0] == {f"{KID}/own/x.yaml"}


def test_what_becomes_another_workspaces_says_so(planted: Planted) -> None:
    """Though it be the same."""
    names = ["deploy/base", "deploy/two/base", "bases", "deploy/none"]
    one, other = planted(THERE), planted({**THERE, "deploy/two/workspace.yaml": None, "deploy/base/x.yaml": b"2"})
    was, now = (states_there(ContentTree(tree.repo, tree.tree_id), "deploy", names) for tree in (one, other))
    assert [before == after for before, after in zip(was, now, strict=True)] == [False, False, True, True]


# --- what it follows from

PATHS = (MARKER, f"{A}/base/kustomization.yaml", "bases/web/kustomization.yaml", "parts/kustomization.yaml")
NAMES = (
    "../base",
    "../../../../bases/web",
    "../../parts",
    "../../../../parts/",
    "..",
    "../../b/base",
    "../x",
    "x.yaml",
)
others = st.sampled_from(
    [f"{K}/x.yaml", f"{A}/base/x.yaml", "bases/web/x.yaml", "parts/p.yaml", "private/x", f"{B}/x", f"{A}/own.yaml"]
)
trees = st.builds(
    lambda said, rest, shares: {
        **BEGIN,
        MARKER: b"",
        **{path: naming(*names) for path, names in said.items()},
        **rest,
        "treeplane.yaml": SHARED if shares else TREEPLANE_YAML.encode(),
    },
    st.dictionaries(st.sampled_from(PATHS), st.lists(st.sampled_from(NAMES), max_size=3)),
    st.dictionaries(others | st.just(f"{A}/base/workspace.yaml"), st.sampled_from([b"1", b"2"])),
    st.booleans(),
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=trees, after=trees | st.none(), more=st.dictionaries(others, st.just(b"3"), max_size=2))
def test_a_digest_stands_for_all_that_is_seen(
    planted: Planted, before: Files, after: Files | None, more: Files
) -> None:
    """And where its directory is the same, and what it names elsewhere comes to the same, so is the digest."""
    one, other = planted(before), planted({**before, **more} if after is None else after)
    was, now = found(one), found(other)
    if was.digest == now.digest:
        assert [*files_of(one, was)] == [*files_of(other, now)]
    directories = [tree.repo.tree_at(tree.tree_id, K) for tree in (one, other)]
    workspaces = [{each.directory for each in tree.workspaces()} for tree in (one, other)]
    same_places = directories[0] == directories[1] and workspaces[0] == workspaces[1]
    if same_places and states(one, was.elsewhere) == states(other, was.elsewhere):
        assert was.digest == now.digest
