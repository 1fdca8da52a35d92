"""What a review foresees of what is rendered is what happens, and a part of a fleet says what all of it says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from support.loadedfleet import configmap
from support.renderedfleet import EDITS, PLACES, RenderedFleet

from apiserver.model.commits import own
from apiserver.model.origins import file_of
from reconciler.commands import validate
from reconciler.loading.inpart import Everybody
from reconciler.repository.objects import Repository
from reconciler.review import foresight
from reconciler.review.ends import CommitRange, find
from reconciler.review.made import review
from reconciler.review.objects import Versions, difference, where, written
from reconciler.review.result import ChangeReview

CHANGES = st.lists(
    st.tuples(st.sampled_from(EDITS), st.integers(0, 6), st.sampled_from([*PLACES])), min_size=1, max_size=4
)
ITSELF = ("Workspace", "LogicalCluster")
Told = dict[str, str]


def foreseen(found: RenderedFleet, base: str, scratch: Path) -> ChangeReview:
    repo = Repository(found.fleet.repo.path)
    ends = find(repo, None, CommitRange.parse(f"{base}..{found.fleet.repo.head}"), scratch / "repo")
    return review(ends, scratch, found.renders)


def told(pairs: dict[object, Versions], paths: dict[str, str]) -> Told:
    out: Told = {}
    for key, pair in pairs.items():
        each = difference(key, pair, paths)  # type: ignore[arg-type]
        if each is not None and each.object.kind not in ITSELF:
            out[f"{each.object.workspace} {each.object}"] = str(each.change)
    return out


def objects(found: ChangeReview) -> Told:
    return {
        f"{each.object.workspace} {each.object}": str(each.change)
        for workspace in found.workspaces
        for each in workspace.objects
        if each.object.kind not in ITSELF
    }


def held(found: ChangeReview) -> dict[str, list[str]]:
    return {each.path: sorted(map(str, each.why)) for each in found.workspaces if each.why}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(history=st.just([]) | CHANGES, changes=CHANGES)
@example(history=[], changes=[("resources", 2, "root:a"), ("shared", 1, "root:a")])
@example(history=[("resources", 2, "root:a")], changes=[("part", 1, "root:a")])
@example(history=[("resources", 3, "root:b")], changes=[("share", 1, "root:a")])
@example(history=[("resources", 1, "root:b")], changes=[("base", 1, "root:b")])
def test_what_is_foreseen_is_what_happens(
    tmp_path_factory: pytest.TempPathFactory,
    history: list[tuple[str, int, str]],
    changes: list[tuple[str, int, str]],
) -> None:
    found = RenderedFleet(tmp_path_factory.mktemp("review"))
    try:
        found.begin()
        for each in history:
            found.happen(*each)
        found.fleet.publish()
        base, load = found.fleet.repo.head, found.fleet.load
        found.fleet.load = lambda *_: None  # type: ignore[assignment, method-assign]
        for each in changes:
            found.happen(*each)
        found.fleet.load = load  # type: ignore[method-assign]
        assume(found.fleet.repo.head != base)
        check(found, base)
    finally:
        for made in found.made:
            made.close()


def check(found: RenderedFleet, base: str) -> None:
    fleet = found.fleet
    part = foreseen(found, base, found.folder / "part")
    with pytest.MonkeyPatch.context() as patched:

        def nobody(*_: object) -> None:
            raise Everybody

        patched.setattr(foresight, "judged", nobody)
        whole = foreseen(found, base, found.folder / "whole")
    assert objects(part) == objects(whole)
    assert held(part) == held(whole)
    before, paths = fleet.store.revision(), where(fleet.store)
    fleet.loader.take(own(fleet.repo.head))
    paths |= where(fleet.store)
    happened = {
        key: pair for key, pair in written(fleet.store, before).items() if file_of(pair.value or {"metadata": {}})
    }
    assert objects(part) == told(happened, paths)
    assert {*held(part)} <= {*fleet.held()}


def test_what_is_shared_is_judged_with_those_alone_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = RenderedFleet(tmp_path)
    try:
        found.begin()
        found.happen("resources", 2, "root:a")
        found.fleet.publish()
        base = found.fleet.repo.head
        found.fleet.repo.commit({"bases/web/s.yaml": configmap("s", v="9")})
        monkeypatch.setattr(foresight, "Everybody", KeyboardInterrupt)
        made = foreseen(found, base, tmp_path / "review")
        assert objects(made) == {"root:a ConfigMap default/k-s": "configured"}
    finally:
        for each in found.made:
            each.close()


def test_files_of_a_work_tree_are_seen_where_they_are_shared(tmp_path: Path) -> None:
    found = RenderedFleet(tmp_path)
    try:
        found.begin()
        found.happen("resources", 2, "root:b")
        found.fleet.publish()
        top = tmp_path / "clone"
        subprocess.run(["git", "clone", "--quiet", str(found.fleet.repo.path), str(top)], check=True)
        (top / "bases/web/s.yaml").write_text(configmap("s", v="9"))
        ends = find(Repository(top), top, CommitRange.parse("HEAD"), tmp_path / "review" / "repo")
        made = review(ends, tmp_path / "review", found.renders)
        assert objects(made) == {"root:b ConfigMap default/k-s": "configured"}
    finally:
        for each in found.made:
            each.close()


def test_one_workspace_is_validated_as_all_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = RenderedFleet(tmp_path)
    monkeypatch.setattr(validate, "renderer_of_user", lambda: found.renders)
    try:
        found.begin()
        found.happen("resources", 3, "root:a")
        found.fleet.publish()
        head, path = found.fleet.repo.head, found.fleet.repo.path
        assert validate.validate_revision(path, head, workspace="root:a").problems == ()
        broken = found.fleet.repo.commit({"bases/web/kustomization.yaml": "resources: [none.yaml]\n"})
        alone = validate.validate_revision(path, broken, workspace="root:a").problems
        assert alone == validate.validate_revision(path, broken).problems
        assert [error.path for error in alone] == ["workspaces/root/a/k/kustomization.yaml"]
        assert validate.validate_revision(path, broken, workspace="root:b").problems == ()
    finally:
        for each in found.made:
            each.close()
