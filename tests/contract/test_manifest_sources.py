"""What every source of manifests does, whatever it reads: plain files, directories among them that are rendered, and a
directory that is another kind of source as a whole.

Trees are drawn at random: files of manifests, good and bad, directories that only group and such that are workspaces of
their own, rules that leave files out, kustomizations, parameters of a program, and directories that turn from one kind
into the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pygit2
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fakerenders import FakeRenders
from support.rendered import MARKER, PARAMETERS, Rendered

from reconciler.layout.draft import Draft
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import Editor, ManifestSource, NotWritten, Piece, ReadOnly, manifests
from reconciler.layout.tree import ROOT, WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading import sources
from reconciler.loading.plainfiles import PlainFiles
from reconciler.loading.sources import Sources
from reconciler.repository.objects import Repository
from reconciler.repository.write import edit_tree

Object = dict[str, Any]
Files = dict[str, bytes]

SHOP = f"{ROOT}/shop"
BEGIN: Files = {f"{ROOT}/workspace.yaml": b"", f"{SHOP}/workspace.yaml": b""}
SLOW = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "KINDS", (Rendered.of, PlainFiles))


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    pygit2.init_repository(str(tmp_path / "fleet.git"), bare=True)
    return Repository(tmp_path / "fleet.git")


def tree_of(repo: Repository, files: Files) -> WorkspaceTree:
    return WorkspaceTree(repo, edit_tree(repo, None, {**BEGIN, **files}))


def found(tree: WorkspaceTree, known: Sources | None = None) -> ManifestSource:
    place = tree.at(SHOP)
    assert isinstance(place, WorkspaceDir)
    return (known or Sources(FakeRenders())).of(tree, place)


# --- trees


def value_of(name: str, data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": data}}


objects = st.builds(value_of, st.sampled_from("abc"), st.sampled_from(["1", "2", "yes", "#", "a\nb"]))
texts = st.one_of(
    st.lists(objects, max_size=3).map(lambda found: "---\n".join(yaml.safe_dump(each) for each in found)),
    st.builds(lambda above, each: "# a line\n" * above + yaml.safe_dump(each), st.integers(0, 3), objects),
    st.sampled_from(["", "kind: [", "kind: ConfigMap\n", "{}\n"]),
).map(str.encode)
plain = st.dictionaries(
    st.sampled_from(["a.yaml", "b.json", "sub/a.yaml", "sub/deep/c.yml", "notes.txt", "sub/workspace.yaml"]), texts
).flatmap(
    lambda files: st.sampled_from([{}, {".treeplaneignore": b"b.*\n"}, {".treeplaneignore": b"sub\n"}]).map(
        lambda rules: {**files, **rules}
    )
)
rendered = st.builds(
    lambda count, size, extra, spaces: {
        MARKER: b"{}",
        PARAMETERS: b" " * spaces + orjson.dumps({"count": count, "size": size, "extra": extra}),
    },
    st.integers(0, 3),
    st.integers(0, 2),
    st.lists(st.sampled_from("xyz").map(lambda name: value_of(name, "1")), max_size=2),
    st.integers(0, 1),
)
broken = st.just({MARKER: b"{}", PARAMETERS: b"{"}) | st.just({MARKER: b"{}"})
_kustomizations = st.sampled_from(
    ["resources: [a.yaml]", "resources: [../a.yaml]", "resources: [a.yaml, ../base]", "resources: []", "resources: ["]
).map(str.encode)
_below = st.dictionaries(st.sampled_from(["sub/a.yaml", "sub/deep/c.yml", "base/a.yaml", "a.yaml", "sub/n.txt"]), texts)
kustomized = st.builds(
    lambda files, inner, base: {
        **files,
        "sub/kustomization.yaml": inner,
        "base/kustomization.yaml": base,
        ".treeplaneignore": b"base\n",
    },
    _below,
    _kustomizations,
    _kustomizations,
)
itself = st.builds(lambda files, said: {**files, "kustomization.yaml": said}, _below, _kustomizations)
SOURCES = {
    "plain": plain,
    "kustomized": kustomized | itself,
    "rendered": rendered | broken,
    "either": plain | kustomized | itself | rendered | broken,
}
named = pytest.mark.parametrize("kind", SOURCES)


def drawn(data: st.DataObject, kind: str) -> Files:
    return {f"{SHOP}/{name}": text for name, text in data.draw(SOURCES[kind]).items()}


# --- reading


@named
@SLOW
@given(data=st.data())
def test_changes_of_one_tree_are_the_other(repo: Repository, kind: str, data: st.DataObject) -> None:
    known = Sources(FakeRenders())
    before, after = (found(tree_of(repo, drawn(data, kind)), known) for _ in range(2))
    here: dict[str, Piece] = {piece.name: piece for piece in before.pieces()}
    for change in after.changes(before):
        assert here.pop(change.name, None) == change.old
        if change.new is not None:
            assert change.new.name == change.name
            here[change.name] = change.new
    assert here == {piece.name: piece for piece in after.pieces()}


@named
@SLOW
@given(data=st.data())
def test_the_same_tree_has_no_changes(repo: Repository, kind: str, data: st.DataObject) -> None:
    files = drawn(data, kind)
    one, other = found(tree_of(repo, files)), found(tree_of(repo, {**files, f"{ROOT}/elsewhere.yaml": b"{"}))
    assert list(other.changes(one)) == []
    assert list(one.pieces()) == list(other.pieces())


@named
@SLOW
@given(data=st.data())
def test_pieces_are_named_once_and_can_be_left_out(repo: Repository, kind: str, data: st.DataObject) -> None:
    source = found(tree_of(repo, drawn(data, kind)))
    pieces = list(source.pieces())
    names = [piece.name for piece in pieces]
    assert len(names) == len(set(names))
    for name in names:
        assert list(source.pieces(besides={name})) == [piece for piece in pieces if piece.name != name]


@named
@SLOW
@given(data=st.data())
def test_each_manifest_says_where_it_comes_from(repo: Repository, kind: str, data: st.DataObject) -> None:
    source = found(tree_of(repo, drawn(data, kind)))
    for piece in source.pieces():
        assert all(manifest.origin.path == piece.name for manifest in piece.manifests)
        assert all(manifest.origin.in_git and not manifest.origin.commit for manifest in piece.manifests)
        assert all(source.line(manifest, "data.x") >= source.line(manifest) >= 0 for manifest in piece.manifests)


@named
@SLOW
@given(data=st.data())
def test_changes_about_a_text_are_those_that_may_say_it(repo: Repository, kind: str, data: st.DataObject) -> None:
    known = Sources()
    before, after = (found(tree_of(repo, drawn(data, kind)), known) for _ in range(2))
    every = list(after.changes(before))
    there = list(after.changes(before, (b"yes", b"nowhere")))
    for change in every:
        said = [m for side in (change.old, change.new) if side is not None for m in side.manifests]
        assert change in there or not any("yes" in str(m.value) for m in said)
    assert all(change in every for change in there)


@named
@SLOW
@given(data=st.data())
def test_what_mentions_a_text_is_found(repo: Repository, kind: str, data: st.DataObject) -> None:
    source = found(tree_of(repo, drawn(data, kind)))
    wanted = [m for m in manifests(source) if "yes" in str(m.value)]
    there = list(source.mentioning(b"yes", b"nowhere"))
    assert all(manifest in there for manifest in wanted)
    assert all(manifest in list(manifests(source)) for manifest in there)


# --- writing back


@named
@SLOW
@given(data=st.data(), new=objects, verb=st.sampled_from(["replace", "remove", "add"]))
def test_what_is_written_back_is_read_again(
    repo: Repository, kind: str, data: st.DataObject, new: Object, verb: str
) -> None:
    files = drawn(data, kind)
    tree = tree_of(repo, files)
    source, draft = found(tree), Draft(repo, tree.tree_id)
    try:
        editor = source.editor(draft)
    except ReadOnly as error:
        assert "change that, commit and push" in str(error)
        assert isinstance(source, Rendered)
        return
    if kind in ("kustomized", "either"):
        check_not_written(source, editor, new, draft)
    before = [piece for piece in source.pieces() if piece.manifests and not piece.problems and not piece.generator]
    if f"{SHOP}/kustomization.yaml" in files:
        return
    if verb == "add" or not before:
        name = f"{SHOP}/made.yaml"
        there: list[Manifest] = []
        changed, expected = editor.add(name, new), [new]
    else:
        piece = data.draw(st.sampled_from(before))
        name, there = piece.name, list(editor.find(piece.name))
        assert [manifest.value for manifest in there] == [manifest.value for manifest in piece.manifests]
        at = data.draw(st.integers(0, len(there) - 1))
        values = [manifest.value for manifest in there]
        if verb == "replace":
            changed, expected = editor.replace(there[at], new), [*values[:at], new, *values[at + 1 :]]
        else:
            changed, expected = editor.remove(there[at]), values[:at] + values[at + 1 :]
    assert [manifest.value for manifest in editor.find(name)] == expected
    assert changed == (expected != [manifest.value for manifest in there])
    assert set(draft.files) == ({name} if changed else set())
    again = found(WorkspaceTree(repo, edit_tree(repo, tree.tree_id, draft.files)))
    assert values_in(again, name) == expected
    others = {f"{SHOP}/{MARKER}", name}
    # What a program makes may be made of that file as well.
    written = ([piece for piece in each.pieces(besides=others) if not piece.generator] for each in (again, source))
    assert next(written) == next(written)


def check_not_written(source: ManifestSource, editor: Editor, new: Object, draft: Draft) -> None:
    """What is rendered is refused, in whichever way it is asked for."""
    for piece in source.pieces():
        if piece.generator:
            directory = piece.name.rpartition("/")[0]
            for refused in (
                lambda name=piece.name: list(editor.find(name)),
                lambda name=f"{directory}/more.yaml": editor.add(name, new),
                *(lambda found=each: editor.replace(found, new) for each in piece.manifests),
                *(lambda found=each: editor.remove(found) for each in piece.manifests),
            ):
                with pytest.raises(NotWritten, match=f"{directory}.* commit and push"):
                    refused()
    assert not draft.files


def values_in(source: ManifestSource, name: str) -> list[Object]:
    return [manifest.value for piece in source.pieces() if piece.name == name for manifest in piece.manifests]


# --- plain files alone


@SLOW
@given(above=st.integers(1, 5), each=objects)
def test_a_line_above_moves_the_line_and_changes_no_manifest(repo: Repository, above: int, each: Object) -> None:
    text = yaml.safe_dump(each).encode()
    name = f"{SHOP}/a.yaml"
    one, other = (found(tree_of(repo, {name: lines + text})) for lines in (b"", b"# a line\n" * above))
    [change] = other.changes(one)
    assert change.old == change.new
    [before], [after] = _manifests(change.old), _manifests(change.new)
    assert before == after
    assert other.line(after, "metadata.name") == one.line(before, "metadata.name") + above


def _manifests(piece: Piece | None) -> Iterator[Manifest]:
    assert piece is not None
    yield from piece.manifests


@pytest.mark.parametrize("names", [("a.yaml", "a.json")])
def test_a_file_that_cannot_be_read_is_a_piece_with_its_problems(repo: Repository, names: tuple[str, ...]) -> None:
    source = found(tree_of(repo, {f"{SHOP}/{name}": b"kind: [" for name in names}))
    for piece in source.pieces():
        assert piece.manifests == ()
        assert {problem.path for problem in piece.problems} == {piece.name}
