"""Files of a request as a program sees them, of whatever tree a stranger may push."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.rendering.material import UnfitFiles, lay_out
from reconciler.rendering.settings import RenderingBounds
from reconciler.repository.objects import Repository, TreeEntry

BOUNDS = RenderingBounds()


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    path = tmp_path_factory.mktemp("git")
    pygit2.init_repository(path, bare=True)
    return Repository(path)


def files(repo: Repository, told: dict[str, str | tuple[str]]) -> list[tuple[str, TreeEntry]]:
    """By path the content, or in a tuple where a link leads."""
    git = pygit2.Repository(str(repo.path))
    out = []
    for path, what in told.items():
        content = what if isinstance(what, str) else what[0]
        blob = str(git.create_blob(content.encode("utf-8", "surrogateescape")))
        out.append((path, TreeEntry(path.rpartition("/")[2], blob, "blob" if isinstance(what, str) else "link")))
    return out


def laid(repo: Repository, top: Path, told: Any, bounds: RenderingBounds = BOUNDS) -> None:
    lay_out(files(repo, told) if isinstance(told, dict) else told, repo, top, bounds)


def test_files_stand_where_the_repository_has_them(repo: Repository, tmp_path: Path) -> None:
    laid(repo, tmp_path, {"a/b/c.yaml": "c", "a/d": "", "e": "e", "é/\udcff": "x"})
    assert (tmp_path / "a/b/c.yaml").read_text() == "c"
    assert (tmp_path / "é/\udcff").read_text() == "x"
    assert {p.stat().st_mode & 0o777 for p in tmp_path.rglob("*")} == {0o600, 0o700}


def test_links_that_stay_inside_lead_there(repo: Repository, tmp_path: Path) -> None:
    told = {
        "a/b/file": "x",
        "a/l": ("b/file",),
        "a/b/up": ("../../other/f",),
        "other/f": "y",
        "d": ("a/b",),
        "e": ("d/up",),
    }
    laid(repo, tmp_path, told)
    assert (tmp_path / "a/l").read_text() == "x"
    assert (tmp_path / "a/b/up").read_text() == (tmp_path / "e").read_text() == "y"
    assert (tmp_path / "d/file").read_text() == "x"


@pytest.mark.parametrize(
    "target",
    [
        "/etc/passwd", "/proc/self/environ", "../../../etc/passwd", "../..", "../../x", "nothere", "",
        "b/../../../../etc", "b/\0x", "y" * 5000,
    ],
)  # fmt: skip
def test_a_link_out_of_them_is_named(repo: Repository, tmp_path: Path, target: str) -> None:
    with pytest.raises(UnfitFiles, match=r"^a/l is a symbolic link") as caught:
        laid(repo, tmp_path, {"a/b/file": "x", "a/l": (target,)})
    assert caught.value.hint
    assert not (tmp_path / "a/l").is_symlink()


def test_a_name_twice_writes_through_no_link(repo: Repository, tmp_path: Path) -> None:
    """git itself makes no such tree; whoever pushes may."""
    outside, top = tmp_path / "outside", tmp_path / "top"
    outside.mkdir()
    top.mkdir()
    link, file = files(repo, {"a": ("../outside",)}), files(repo, {"a/new": "x"})
    for order in (link + file, file + link):
        with pytest.raises(UnfitFiles):
            laid(repo, top, order)
    inside = files(repo, {"a": ("b",), "b/c": "x"}) + files(repo, {"a/new": "x"})
    with pytest.raises(UnfitFiles, match="twice"):
        laid(repo, _empty(tmp_path, "1"), inside)
    with pytest.raises(UnfitFiles, match="twice"):
        laid(repo, _empty(tmp_path, "2"), files(repo, {"a": "x"}) + files(repo, {"a/b": "x"}))
    with pytest.raises(UnfitFiles, match="twice"):
        laid(repo, _empty(tmp_path, "3"), files(repo, {"a": "x"}) * 2)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/etc/x", "a//b", "", ".", "a/.", "a\0b", "x" * 300, "y/" * 70 + "z"]
)
def test_what_is_no_path_is_not_written(repo: Repository, tmp_path: Path, path: str) -> None:
    entry = files(repo, {"x": "x"})[0][1]
    with pytest.raises(UnfitFiles):
        laid(repo, _empty(tmp_path, "top"), [(path, entry)])
    assert [p.name for p in tmp_path.iterdir()] == ["top"]


def test_too_much_is_refused_before_it_is_written(repo: Repository, tmp_path: Path) -> None:
    with pytest.raises(UnfitFiles, match="more than 3 files"):
        laid(repo, tmp_path, {str(n): "x" for n in range(4)}, replace(BOUNDS, files=3))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(UnfitFiles, match="more than 1 MiB"):
        laid(repo, tmp_path, {str(n): "x" * 600_000 for n in range(4)}, replace(BOUNDS, content=1 << 20))
    assert len(list(tmp_path.iterdir())) == 1


_NAMES = st.sampled_from(["a", "b", "c"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=3).map("/".join)
_TARGETS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=5).map("/".join)


@given(st.dictionaries(_PATHS, st.just("x") | st.tuples(_TARGETS), max_size=8))
def test_whatever_links_there_are_none_leads_out(
    tmp_path_factory: pytest.TempPathFactory, repo: Repository, told: dict[str, Any]
) -> None:
    above = tmp_path_factory.mktemp("any")
    top = _empty(above, "a")
    (above / "b").write_text("secret")
    with contextlib.suppress(UnfitFiles):
        laid(repo, top, told)
    for path in top.rglob("*"):
        assert path.is_symlink() is False or _resolved(path).is_relative_to(top.resolve())
    assert sorted(p.name for p in above.iterdir()) == ["a", "b"]


def _resolved(link: Path) -> Path:
    try:
        return link.resolve(strict=False)
    except (RuntimeError, OSError):  # they lead to each other
        return link.parent.resolve()


def _empty(above: Path, name: str) -> Path:
    made = above / name
    made.mkdir()
    return made
