"""What a revision may be called, and which commit it is: on this machine, and at a URL."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo

from apiserver.model.errors import StatusError
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import Mirror
from reconciler.viewing.revisions import commit_of, places
from reconciler.viewing.sources import RevisionSource, beside

EXPRESSIONS = (
    *("HEAD~1", "main^", "main..other", "main...other", "main@{1}", "@", "@{u}", "-x", "--all", ":/text", "main:file"),
    *("a b", "a\n", "", "/main", "main/", "a//b", ".a", "a/.b", "a.lock", "a.lock/b", "a.", "*", "refs/*", "a\\b"),
)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_an_expression_is_looked_up_nowhere(text: str) -> None:
    with pytest.raises(StatusError) as told:
        places(text)
    assert told.value.code == 400


@given(st.text(st.characters(codec="ascii"), min_size=1, max_size=12))
def test_what_is_looked_up_is_a_name_that_git_takes(text: str) -> None:
    try:
        found = places(text)
    except StatusError:
        return
    for each in found:
        assert subprocess.run(["git", "check-ref-format", each], check=False).returncode == 0, (text, each)
        assert each.startswith(("refs/heads/", "refs/tags/", "refs/pull/", "refs/merge-requests/"))


def test_where_a_name_is_looked_for() -> None:
    assert places("v1.2") == ["refs/heads/v1.2", "refs/tags/v1.2"]
    assert places("refs/heads/v1.2") == ["refs/heads/v1.2"]
    assert places("pull/12") == places("refs/pull/12/head") == ["refs/pull/12/head"]
    assert places("merge-requests/3/merge") == ["refs/merge-requests/3/merge"]
    for own in ("refs/treeplane/recorded", "refs/remotes/origin/main", "refs/notes/x", "refs/stash"):
        assert places(own) == [], "the server's own, and what is nobody's to ask for"


def test_what_may_mean_several_is_told() -> None:
    ids = {"abcdef1": ["abcdef1" + "0" * 33]}

    def find(refs: object) -> dict[str, str]:
        return {"refs/heads/abcdef1": "1" * 40, "refs/heads/same": "2" * 40, "refs/tags/same": "2" * 40}

    with pytest.raises(StatusError, match="may mean each of"):
        commit_of("abcdef1", find, lambda start: ids.get(start, []))
    same = {"refs/heads/same": "2" * 40, "refs/tags/same": "2" * 40}
    assert commit_of("same", lambda _: same, lambda _: []) == "2" * 40
    with pytest.raises(StatusError, match="no commit, branch, tag or pull request is called"):
        commit_of("nope", lambda _: {}, lambda _: [])


@pytest.fixture(params=["path", "url"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[FleetRepo, RevisionSource]:
    """A repository with a branch, tags and a pull request that the mirror does not have where it is a URL."""
    repo = FleetRepo(tmp_path / "fleet.git")
    repo.commit({"a": "1"})
    text = str(repo.path) if request.param == "path" else f"file://{repo.path}"
    mirror = Mirror(tmp_path / "data", text, "main", "treeplane/status")
    mirror.refresh()
    return repo, RevisionSource(beside(mirror.path, tmp_path / "own"), text)


def named(repo: FleetRepo, ref: str, commit: str) -> None:
    subprocess.run(["git", "-C", str(repo.path), "update-ref", ref, commit], check=True)


def test_a_revision_is_found_where_the_source_has_it(source: tuple[FleetRepo, RevisionSource]) -> None:
    repo, found = source
    head, aside = repo.head, ""
    aside = repo.commit({"a": "2"})
    pull = repo.commit({"a": "3"}, parent=head)
    repo.reset(head)
    named(repo, "refs/heads/feature/x", aside)
    named(repo, "refs/pull/7/head", pull)
    command = ["git", "-C", str(repo.path), "-c", "user.name=t", "-c", "user.email=t@t", "tag", "-a", "-m", "t"]
    subprocess.run([*command, "v1", aside], check=True)

    assert found.commit("main") == head
    assert found.commit("feature/x") == found.commit("v1") == found.commit("refs/tags/v1") == aside
    assert found.commit("pull/7") == pull
    assert found.commit(pull) == pull
    assert found.commit(head[:8]) == head
    for none in ("nope", "pull/8", "0" * 40, "1234567"):
        with pytest.raises(StatusError, match="no commit") as told:
            found.commit(none)
        assert told.value.code == 404, none


def test_what_is_as_long_as_an_id_is_no_option_of_git(source: tuple[FleetRepo, RevisionSource], tmp_path: Path) -> None:
    trace = tmp_path / "t"
    for text in (
        f"--upload-pack=touch {trace};".ljust(40, "#"),
        "--upload-pack=touch${IFS}t;".ljust(40, "x"),
        "z" * 40,
    ):
        with pytest.raises(StatusError):
            source[1].commit(text[:40])
    long = "b" + "ranch" * 7 + "-abc"
    assert len(long) == 40
    named(source[0], f"refs/heads/{long}", source[0].head)
    assert source[1].commit(long) == source[0].head
    assert not trace.exists()


def test_what_is_no_commit_is_none(source: tuple[FleetRepo, RevisionSource]) -> None:
    repo, found = source
    tree = repo.repo.commit(repo.head).tree
    with pytest.raises((StatusError, RepositoryError)):
        found.commit(tree)


def test_the_mirror_gets_nothing_of_what_is_asked_for(tmp_path: Path) -> None:
    repo = FleetRepo(tmp_path / "fleet.git")
    head = repo.commit({"a": "1"})
    url = f"file://{repo.path}"
    mirror = Mirror(tmp_path / "data", url, "main", "treeplane/status")
    mirror.refresh()
    pull = repo.commit({"a": "3"}, parent=head)
    repo.reset(head)
    named(repo, "refs/pull/7/head", pull)
    before = {*mirror.repository.references}

    assert RevisionSource(beside(mirror.path, tmp_path / "own"), url).commit("pull/7") == pull
    assert {*mirror.repository.references} == before
    assert not Mirror(tmp_path / "data", url, "main", "treeplane/status").repository.has(pull)
