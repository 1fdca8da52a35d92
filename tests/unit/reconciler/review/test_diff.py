"""What `treeplane diff` says of workspaces, of objects and of what is wrong. Of clones see test_ends, of clusters
test_copies."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from click.testing import CliRunner, Result
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.moving import moving, uid_of
from support.widgets import binding, export, schema, widget

from reconciler.__main__ import main
from reconciler.commands.diff import compare
from reconciler.loading.changeset import ChangeKind
from reconciler.review import foresight
from reconciler.review.fields import ABSENT
from reconciler.review.result import ChangeReview, WorkspaceDifference

C, D, P = (f"workspaces/root/{name}" for name in "cdp")
API = "tenancy.kcp.io/v1alpha1"


def workspace(type_: str = "", path: str = "root", **annotations: str) -> str:
    said: dict[str, Any] = {"apiVersion": API, "kind": "Workspace"}
    said |= {"metadata": {"annotations": annotations}} if annotations else {}
    return json.dumps(said | ({"spec": {"type": {"name": type_, "path": path}}} if type_ else {}))


def typed(name: str, **spec: Any) -> str:
    return json.dumps({"apiVersion": API, "kind": "WorkspaceType", "metadata": {"name": name}, "spec": spec})


FREE = {"treeplane.dev/protected": "false"}


def free(fleet: LoadedFleet, directory: str, **files: str) -> None:
    """All of a workspace may go."""
    fleet.commit({f"{directory}/workspace.yaml": workspace(**FREE), **files})
    fleet.publish()


def foreseen(fleet: LoadedFleet, files: dict[str, str | None], message: str = "Change") -> ChangeReview:
    """Of a commit on top of what is served, which is put there."""
    base = fleet.repo.head
    fleet.repo.commit(files, message)
    return compare(fleet.repo.path, f"{base}..main")


def found(review: ChangeReview, path: str) -> WorkspaceDifference:
    [each] = [each for each in review.workspaces if each.path == path]
    return each


def changes(review: ChangeReview) -> dict[str, ChangeKind]:
    return {each.path: each.change for each in review.workspaces}


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole is never judged."""

    class Whole(BaseException):
        pass

    monkeypatch.setattr(foresight, "Everybody", Whole)


def run(fleet: LoadedFleet, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["diff", "-C", str(fleet.repo.path), *arguments])


def pinned(commit: str) -> str:
    return json.dumps({"apiVersion": API, "kind": "Workspace", "spec": {"serve": {"commit": commit}}})


@pytest.mark.usefixtures("alone")
def test_who_is_pinned_counts_with_what_is_served_of_him(fleet: LoadedFleet) -> None:
    consumer = {f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)}
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export(), **consumer})
    fleet.commit({f"{B}/workspace.yaml": pinned(fleet.repo.head), **dict.fromkeys(consumer)})
    assert fleet.find("root:b", "widgets.example.io", "w") is not None
    fleet.publish()
    assert not foreseen(fleet, {f"{B}/app.yaml": configmap(a="c")}).differs
    fleet.load()
    fleet.publish()
    assert changes(foreseen(fleet, {f"{B}/workspace.yaml": ""}))["root:b"] is ChangeKind.HELD, "its widgets would go"
    fleet.repo.reset(fleet.repo.commits[-2])
    review = foreseen(fleet, {f"{A}/export.json": None})
    assert "consumers have objects of its kinds" in str(found(review, "root:a"))


# -- the words


@pytest.mark.usefixtures("alone")
def test_created_configured_deleted_and_unchanged(fleet: LoadedFleet) -> None:
    fleet.commit({f"{B}/more.yaml": configmap("more")})
    fleet.publish()
    review = foreseen(
        fleet,
        {
            f"{A}/app.yaml": configmap(a="c"),
            f"{B}/more.yaml": None,
            f"{B}/new.yaml": configmap("new"),
            f"{C}/workspace.yaml": "",
            f"{C}/app.yaml": configmap(),
            "workspaces/root/app.yaml": "# only a remark\n" + configmap(),
        },
    )
    assert changes(review) == {
        "root": ChangeKind.UNCHANGED,
        "root:a": ChangeKind.CONFIGURED,
        "root:b": ChangeKind.CONFIGURED,
        "root:c": ChangeKind.CREATED,
    }
    [app] = found(review, "root:a").objects
    assert (str(app.object), app.change, app.file) == ("ConfigMap default/app", ChangeKind.CONFIGURED, f"{A}/app.yaml")
    assert [tuple(each) for each in app.fields] == [("data.a", "b", "c")]
    assert [(each.object.name, each.change) for each in found(review, "root:b").objects] == [
        ("more", ChangeKind.DELETED),
        ("new", ChangeKind.CREATED),
    ]
    assert [each.object.name for each in found(review, "root:c").objects] == ["app"]
    assert found(review, "root:c").others == 1, "the namespace default"
    assert (review.differs, review.holds, review.notes) == (True, False, ())


@pytest.mark.usefixtures("alone")
def test_a_file_that_moves_and_one_that_is_nobodys(fleet: LoadedFleet) -> None:
    review = foreseen(fleet, {f"{A}/app.yaml": None, f"{A}/other.yaml": configmap(), "README.md": "hello"})
    [app] = found(review, "root:a").objects
    assert (app.change, app.file) == (ChangeKind.MOVED, f"{A}/other.yaml")
    fleet.load()
    assert not foreseen(fleet, {"README.md": "hello, world", "workspaces/root/notes.txt": "x"}).differs


@pytest.mark.usefixtures("alone")
def test_a_workspace_that_moves_and_one_that_only_seems_to(fleet: LoadedFleet) -> None:
    free(fleet, A)
    base, uid = fleet.repo.head, uid_of(fleet, "root:a")
    said = workspace(**FREE).replace('"annotations"', f'"uid": "{uid}", "annotations"')
    review = foreseen(fleet, moving(fleet, A, C, uid) | {f"{C}/workspace.yaml": said})
    assert changes(review) == {"root:c": ChangeKind.MOVED}
    assert found(review, "root:c").moved_from == "root:a"
    fleet.repo.reset(base)
    review = foreseen(fleet, moving(fleet, A, C, ""))
    assert review.renames == {"root:a": "root:c"}
    assert changes(review) == {"root:a": ChangeKind.DELETED, "root:c": ChangeKind.CREATED}


@pytest.mark.usefixtures("alone")
def test_what_workspace_yaml_says_is_told_of_the_workspace(fleet: LoadedFleet) -> None:
    review = foreseen(fleet, {f"{A}/workspace.yaml": workspace(**{"example.io/team": "blue"})})
    [itself] = found(review, "root:a").objects
    assert (itself.object.kind, itself.fields[0].field) == ("Workspace", "metadata.annotations[example.io/team]")


# -- what is held


@pytest.mark.usefixtures("alone")
def test_what_is_held_says_where_and_why(fleet: LoadedFleet) -> None:
    review = foreseen(fleet, {f"{A}/bad.yaml": "kind: [", f"{B}/app.yaml": configmap(a="c")})
    assert changes(review) == {"root:a": ChangeKind.HELD, "root:b": ChangeKind.CONFIGURED}
    [error] = found(review, "root:a").why
    assert (error.path, error.line) == (f"{A}/bad.yaml", 2)
    assert review.holds
    assert list(review.errors()) == [error]


@pytest.mark.usefixtures("alone")
def test_who_is_held_already_is_told_where_the_change_touches_it(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/bad.yaml": "kind: ["})
    fleet.publish()
    assert changes(foreseen(fleet, {f"{B}/app.yaml": configmap(a="c")})) == {"root:b": ChangeKind.CONFIGURED}
    fleet.load()
    fleet.publish()
    assert changes(foreseen(fleet, {f"{A}/app.yaml": configmap(a="c")})) == {"root:a": ChangeKind.HELD}
    fleet.load()
    fleet.publish()
    review = foreseen(fleet, {f"{A}/bad.yaml": None})
    assert changes(review) == {"root:a": ChangeKind.CONFIGURED}
    assert [tuple(each) for each in found(review, "root:a").objects[0].fields] == [("data.a", "b", "c")], (
        "from what is served, not from the commit before"
    )


@pytest.mark.parametrize("text", ["kind: [", None, "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nspec: {a: 1}\n"])
def test_a_commit_that_nothing_is_taken_of(fleet: LoadedFleet, text: str | None) -> None:
    file = "treeplane.yaml" if text else "workspaces"
    review = foreseen(fleet, {file: text})
    assert review.holds
    assert review.problems
    assert not review.workspaces


@pytest.mark.usefixtures("alone")
def test_what_has_to_be_allowed_is_told_with_its_hash_and_gone_where_it_is(fleet: LoadedFleet) -> None:
    many = {f"{A}/{n}.yaml": configmap(f"c{n}") for n in range(20)}
    fleet.commit(many)
    fleet.publish()
    base = fleet.repo.head
    review = foreseen(fleet, dict.fromkeys(many))
    [refused] = review.refused.values()
    assert [*review.refused] == ["root:a"]
    assert len(refused.losses) == 20
    [error] = found(review, "root:a").why
    assert refused.digest in error.hint
    assert "c7" not in str(error), "the lines are told once"
    fleet.repo.commit({}, f"Allow\n\nAllow-Delete: {refused.digest}\n")
    allowed = compare(fleet.repo.path, f"{base}..main")
    assert not allowed.refused
    assert {each.change for each in found(allowed, "root:a").objects} == {ChangeKind.DELETED}
    assert not allowed.warnings
    fleet.repo.commit({f"{A}/app.yaml": None})
    stale = compare(fleet.repo.path, f"{base}..main")
    [other] = stale.refused.values()
    [warning] = stale.warnings
    assert refused.digest in warning.text
    assert other.digest in warning.text


def test_a_trailer_that_allows_nothing_is_told(fleet: LoadedFleet) -> None:
    review = foreseen(fleet, {f"{A}/app.yaml": configmap(a="c")}, f"Change\n\nAllow-Delete: {'a' * 40}\n")
    [warning] = review.warnings
    assert "a" * 40 in warning.text
    assert "nothing is deleted" in warning.text


@pytest.mark.usefixtures("alone")
def test_a_workspace_with_all_below_it_goes(fleet: LoadedFleet) -> None:
    free(fleet, A, **{f"{A}/c/workspace.yaml": "", f"{A}/c/app.yaml": configmap()})
    review = foreseen(fleet, {A: None})
    assert changes(review) == {"root:a": ChangeKind.DELETED, "root:a:c": ChangeKind.DELETED}
    assert [each.object.name for each in found(review, "root:a:c").objects] == ["app"]


# -- whom it concerns besides


@pytest.mark.usefixtures("alone")
def test_who_takes_an_export_is_found(fleet: LoadedFleet) -> None:
    """A schema that takes less holds a consumer who has more; nobody else is judged."""
    other = {"workspaces/root/ab/workspace.yaml": "", "workspaces/root/ab/app.yaml": configmap()}
    fleet.commit({f"{A}/schema.json": schema(color={"type": "string"}), f"{A}/export.json": export(), **other})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1, color="red")})
    fleet.publish()
    review = foreseen(fleet, {f"{A}/new.json": schema("v2"), f"{A}/export.json": export("v2")})
    assert "root:b" in changes(review) or "root:a" in changes(review)
    assert review.holds
    assert "root:ab" not in changes(review)
    fleet.load()
    assert {path for path, change in changes(review).items() if change is ChangeKind.HELD} == {*fleet.held()}


@pytest.mark.usefixtures("alone")
def test_an_export_that_goes_and_whose_objects_are_there(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": export()})
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    fleet.publish()
    review = foreseen(fleet, {f"{A}/export.json": None})
    [refused] = review.refused.values()
    assert "consumers have objects" in refused.why
    fleet.load()
    assert [*fleet.held()] == ["root:a"]


MAINTAINED = {"defaultAPIBindings": [{"path": "root:p", "export": "widgets"}], "defaultAPIBindingLifecycle": "Maintain"}
OFFER = {f"{P}/workspace.yaml": "", f"{P}/schema.json": schema(), f"{P}/export.json": export()}


@pytest.mark.usefixtures("alone")
def test_who_is_of_a_type_is_found(fleet: LoadedFleet) -> None:
    """And who is of one that extends it."""
    extended = typed("extended", extend={"with": [{"name": "lab", "path": "root"}]})
    fleet.commit({"workspaces/root/types.json": typed("lab"), "workspaces/root/more.json": extended, **OFFER})
    fleet.commit({f"{C}/workspace.yaml": workspace("lab"), f"{D}/workspace.yaml": workspace("extended")})
    fleet.publish()
    assert not fleet.held()
    review = foreseen(fleet, {"workspaces/root/types.json": typed("lab", **MAINTAINED)})
    assert changes(review) == dict.fromkeys(("root", "root:c", "root:d"), ChangeKind.CONFIGURED)
    assert (found(review, "root:c").others, found(review, "root:d").others) == (1, 1), "the binding"


def test_where_nobody_names_a_type_everybody_is_judged(fleet: LoadedFleet) -> None:
    fleet.commit({"workspaces/root/types.json": typed("universal"), f"{A}/c/workspace.yaml": "", **OFFER})
    fleet.publish()
    review = foreseen(fleet, {"workspaces/root/types.json": typed("universal", **MAINTAINED)})
    assert any("all workspaces were judged" in note for note in review.notes)
    assert changes(review)["root:a:c"] is ChangeKind.CONFIGURED


@pytest.mark.usefixtures("alone")
def test_what_an_ignore_file_hides_goes(fleet: LoadedFleet) -> None:
    free(fleet, A)
    review = foreseen(fleet, {"workspaces/root/.treeplaneignore": "a/\n"})
    assert changes(review)["root:a"] is ChangeKind.DELETED


# -- what may not be meant


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("path", ["root:nowhere", "root:a"])
def test_a_binding_that_leads_nowhere_is_a_warning(fleet: LoadedFleet, path: str) -> None:
    review = foreseen(fleet, {f"{B}/binding.json": binding(path)})
    [warning] = review.warnings
    assert (warning.path, warning.file) == ("root:b", f"{B}/binding.json")
    assert path in warning.text
    assert not review.holds
    fleet.load()
    fleet.publish()
    assert not foreseen(fleet, {f"{B}/app.yaml": configmap(a="c")}).warnings, "it stood there before"


# -- the fleet


def test_what_treeplane_yaml_says_is_told(fleet: LoadedFleet) -> None:
    text = fleet.repo.files(fleet.repo.head)["treeplane.yaml"]
    review = foreseen(fleet, {"treeplane.yaml": text + "spec: {safety: {maxDeletedObjects: 7}}\n"})
    assert [tuple(each) for each in review.settings] == [("spec.safety.maxDeletedObjects", ABSENT, 7)]
    assert review.differs


@pytest.mark.parametrize("recorded", [True, False])
def test_from_a_commit_that_nothing_can_be_served_of(fleet: LoadedFleet, recorded: bool) -> None:
    """What is served stays, so that counts; where nobody knows it, all is new."""
    text = fleet.repo.files(fleet.repo.head)["treeplane.yaml"]
    broken = fleet.repo.commit({"treeplane.yaml": "kind: ["})
    fleet.repo.commit({"treeplane.yaml": text, f"{C}/workspace.yaml": "", f"{C}/app.yaml": configmap()})
    if not recorded:
        subprocess.run(["git", "-C", str(fleet.repo.path), "branch", "-q", "-D", "treeplane/status"], check=True)
    review = compare(fleet.repo.path, f"{broken}..main")
    assert not review.holds
    assert [each.object.name for each in found(review, "root:c").objects] == ["app"]
    assert changes(review)["root:c"] is ChangeKind.CREATED
    assert ("root:a" in changes(review)) is not recorded
    assert any(f"nothing of {broken:.10} can be served" in note for note in review.notes)


# -- secrets


@pytest.mark.parametrize("form", ["text", "json", "yaml", "markdown", "sarif", "github"])
def test_no_form_says_a_secret(fleet: LoadedFleet, form: str) -> None:
    def secret(**data: str) -> str:
        return json.dumps({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": data})

    fleet.commit({f"{A}/s.json": secret(password="s3cr3t", gone="s3cr3t")})
    fleet.publish()
    base = fleet.repo.head
    fleet.repo.commit({f"{A}/s.json": secret(password="t0ps3cret"), f"{B}/s.json": secret(a="t0ps3cret")})
    bad = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"x": "t0ps3cret!"}}
    fleet.repo.commit({"workspaces/root/s.json": json.dumps(bad)})
    done = run(fleet, f"{base}..main", "-o", form)
    assert done.exit_code == 3
    for value in ("s3cr3t", "t0ps3cret", "czNjcjN0", "dDBwczNjcmV0"):
        assert value not in done.output
    assert form in ("sarif", "github") or "password" in done.output


# -- the command line


def test_exit_codes(fleet: LoadedFleet) -> None:
    base = fleet.repo.head
    assert run(fleet, f"{base}..main").exit_code == 0
    assert "no differences" in run(fleet, f"{base}..main").output
    fleet.repo.commit({f"{A}/app.yaml": configmap(a="c")})
    assert run(fleet, f"{base}..main").exit_code == 1
    fleet.repo.commit({f"{A}/bad.yaml": "kind: ["})
    assert run(fleet, f"{base}...main").exit_code == 3
    assert run(fleet, "nothing..main").exit_code == 2
    assert "nothing names no commit" in run(fleet, "nothing..main").output
    assert run(fleet, "-o", "pdf").exit_code == 2
    assert run(fleet).exit_code == 2, "there is no work tree"
