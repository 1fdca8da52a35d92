from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from reconciler.layout.level import problem
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.objects import Repository
from reconciler.repository.write import Blob

Planted = Callable[..., WorkspaceTree]
R = "workspaces/root"
FLEET: dict[str, bytes] = {
    "treeplane.yaml": b"",
    "docs/x.yaml": b"not read",
    f"{R}/a.yaml": b"1",
    f"{R}/apps/b.yml": b"2",
    f"{R}/apps/c.json": b"3",
    f"{R}/apps/notes.txt": b"4",
    f"{R}/shop/workspace.yaml": b"",
    f"{R}/shop/web/workspace.yml": b"",
    f"{R}/shop/web/deep/down/d.yaml": b"5",
    f"{R}/7f/bank/workspace.json": b"{}",
    f"{R}/7f/e.yaml": b"6",
}


def paths_of(found: Iterable[WorkspaceDir]) -> list[str]:
    return [w.path for w in found]


def own(tree: WorkspaceTree, path: str) -> list[str]:
    workspace = tree.find(path)
    assert workspace is not None
    return sorted(p for p, _ in tree.files(workspace))


def said(tree: WorkspaceTree, path: str) -> list[str]:
    workspace = tree.find(path)
    assert workspace is not None
    return [str(e) for e in tree.problems(workspace)]


def test_directories_are_workspaces_or_group(planted: Planted) -> None:
    tree = planted(FLEET)
    found = {w.path: w for w in tree.workspaces()}
    assert sorted(found) == ["root", "root:bank", "root:shop", "root:shop:web"]
    assert list(found).index("root:shop") < list(found).index("root:shop:web")
    assert found["root"].manifest is None
    assert found["root:bank"].directory == f"{R}/7f/bank"
    assert found["root:shop:web"].manifest_path == f"{R}/shop/web/workspace.yml"
    assert own(tree, "root") == [f"{R}/7f/e.yaml", f"{R}/a.yaml", f"{R}/apps/b.yml", f"{R}/apps/c.json"]
    assert own(tree, "root:shop") == []
    assert own(tree, "root:shop:web") == [f"{R}/shop/web/deep/down/d.yaml"]
    for workspace in found.values():
        ways = (
            tree.find(workspace.path),
            tree.at(workspace.directory),
            tree.find(workspace.path, workspace.directory),
            tree.find(workspace.path, "workspaces/root/elsewhere"),
        )
        assert {way and way._replace(files=None) for way in ways} == {workspace._replace(files=None)}
        assert tree.problems(workspace) == []
    assert tree.fault() is None
    assert tree.notices() == []


def test_few_files_are_kept_with_their_workspace(planted: Planted) -> None:
    few = {f"{R}/few/workspace.yaml": b"", f"{R}/few/a.yaml": b"", f"{R}/few/b.yaml": b""}
    many = {f"{R}/many/workspace.yaml": b"", **{f"{R}/many/{i}.yaml": b"" for i in range(9)}}
    deep = {f"{R}/deep/workspace.yaml": b"", f"{R}/deep/er/a.yaml": b""}
    tree = planted({**few, **many, **deep})
    found = {w.path: w for w in tree.workspaces()}
    assert [e.name for e in found["root:few"].files or ()] == ["a.yaml", "b.yaml"]
    assert found["root:many"].files is found["root:deep"].files is None
    for workspace in found.values():
        assert list(tree.files(workspace)) == list(tree.files(workspace._replace(files=None)))


def test_rules_of_sops_are_no_manifest(planted: Planted) -> None:
    tree = planted(
        {**FLEET, f"{R}/shop/.sops.yaml": b"creation_rules: []", f"{R}/shop/a/.sops.yaml": b"", f"{R}/shop/b.yaml": b""}
    )
    assert own(tree, "root:shop") == [f"{R}/shop/b.yaml"]
    assert said(tree, "root:shop") == []


def test_the_root_may_have_a_manifest(planted: Planted) -> None:
    tree = planted({f"{R}/workspace.yaml": b""})
    (root,) = tree.workspaces()
    assert (root.path, root.manifest_path) == ("root", f"{R}/workspace.yaml")
    assert own(tree, "root") == []


@pytest.mark.parametrize(
    ("file", "path"),
    [
        (f"{R}/a.yaml", "root"),
        (f"{R}/apps/b.yml", "root"),
        (f"{R}/shop/workspace.yaml", "root:shop"),
        (f"{R}/shop/web/deep/down/d.yaml", "root:shop:web"),
        (f"{R}/shop/web/deep/new.yaml", "root:shop:web"),
        (f"{R}/nowhere/x.yaml", None),
        ("treeplane.yaml", None),
        ("docs/x.yaml", None),
        ("workspaces/rooted/x.yaml", None),
    ],
)
def test_owners_of_files(planted: Planted, file: str, path: str | None) -> None:
    found = planted(FLEET).owner(file)
    assert (found.path if found else None) == path


def test_what_is_not_a_workspace_is_not_found(planted: Planted) -> None:
    tree = planted(FLEET)
    for path in ("root:7f", "root:nope", "root:shop:bank", "other", "root:shop:web:x"):
        assert tree.find(path) is None
    for directory in (f"{R}/7f", f"{R}/apps", "workspaces", "", "docs"):
        assert tree.at(directory) is None


@pytest.mark.parametrize("name", ["Shop", "a_b", "-a", "a-", "a.b", "x" * 64, "ü", "a:b"])
def test_names_that_kubernetes_refuses(planted: Planted, name: str) -> None:
    tree = planted({f"{R}/a.yaml": b"", f"{R}/{name}/workspace.yaml": b"", f"{R}/{name}/ok/workspace.yaml": b""})
    bad = next(w for w in tree.workspaces() if w.directory == f"{R}/{name}")
    assert "cannot be the name of a workspace (a workspace's name has lower-case letters" in str(tree.problems(bad)[0])
    below = next(w for w in tree.workspaces() if w.directory == f"{R}/{name}/ok")
    assert tree.problems(below)
    assert ":" not in bad.path.removeprefix("root:")


def test_a_colon_does_not_make_another_workspaces_path(planted: Planted) -> None:
    tree = planted({f"{R}/a:b/workspace.yaml": b"", f"{R}/a/workspace.yaml": b"", f"{R}/a/b/workspace.yaml": b""})
    found = tree.find("root:a:b")
    assert found is not None
    assert found.directory == f"{R}/a/b"
    assert said(tree, "root:a:b") == []


def test_one_path_twice_is_an_error_of_both(planted: Planted) -> None:
    tree = planted({**FLEET, f"{R}/8/bank/workspace.yaml": b""})
    assert paths_of(tree.workspaces()).count("root:bank") == 1
    assert tree.directories("root:bank") == [f"{R}/7f/bank", f"{R}/8/bank"]
    assert said(tree, "root:bank") == [
        f"{R}/7f/bank: is the workspace root:bank, and so is {R}/8/bank (rename one of the directories)",
        f"{R}/8/bank: is the workspace root:bank, and so is {R}/7f/bank (rename one of the directories)",
    ]


def test_two_manifests_of_one_workspace(planted: Planted) -> None:
    tree = planted({f"{R}/shop/workspace.json": b"{}", f"{R}/shop/workspace.yaml": b""})
    assert said(tree, "root:shop") == [
        f"{R}/shop/workspace.json: stands beside {R}/shop/workspace.yaml (a workspace has one manifest; remove one)"
    ]


def test_links_and_submodules_are_errors_by_name(planted: Planted) -> None:
    link, sub = Blob("e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", b"120000"), Blob("1" * 40, b"160000")
    tree = planted(
        {
            f"{R}/a.yaml": b"",
            f"{R}/link.yaml": link,
            f"{R}/linked": link,
            f"{R}/README.md": link,
            f"{R}/vendor": sub,
            f"{R}/shop/workspace.yaml": link,
        }
    )
    root = tree.find("root")
    assert root is not None
    errors = [problem(p, e) for p, e in tree.files(root)]
    assert [str(e).partition(" (")[0] for e in errors if e] == [
        f"{R}/link.yaml: is a symbolic link",
        f"{R}/linked: is a symbolic link",
        f"{R}/vendor: is a submodule",
    ]
    assert "shop/workspace.yaml: is a symbolic link" in said(tree, "root:shop")[0]


def test_names_and_depth(planted: Planted) -> None:
    deep = f"{R}/" + "d/" * 70
    tree = planted({f"{R}/bad\udcff.yaml": b"", f"{R}/new\nline.yaml": b"", f"{deep}x.yaml": b""})
    root = tree.find("root")
    assert root is not None
    texts = sorted(str(problem(p, e)) for p, e in tree.files(root))
    assert [t.partition(": ")[2].partition(" (")[0] for t in texts] == [
        "has a name that is not printable UTF-8",
        "lies more than 64 directories deep",
        "has a name that is not printable UTF-8",
    ]
    long = "/".join(["x" * 60] * 8)
    tree = planted({f"{R}/{'/'.join(long.split('/')[:i])}/workspace.yaml": b"" for i in range(1, 9)})
    errors = [e for w in tree.workspaces() for e in tree.problems(w)]
    assert {e.message for e in errors} == {"the workspace path has more than 400 characters"}


@pytest.mark.parametrize(
    "files",
    [
        {"treeplane.yaml": b""},
        {f"{R}/README.md": b""},
        {f"{R}/a/.gitkeep": b""},
        {f"{R}/a.yaml": b"", f"{R}/.treeplaneignore": b"*\n"},
        {f"{R}/a.yaml": b"", ".treeplaneignore": b"workspaces/\n"},
        {"workspaces/root": b"a file"},
    ],
)
def test_a_root_without_manifests_is_a_fault(planted: Planted, files: dict[str, bytes]) -> None:
    fault = planted(files).fault()
    assert fault is not None
    assert "nothing is deleted" in fault.message


def test_strays_are_told(planted: Planted) -> None:
    assert [str(n) for n in planted({**FLEET, "workspaces/team/workspace.yaml": b""}).notices()] == [
        "workspaces/team: is not read (a workspace stands in workspaces/root/)"
    ]


def test_ignored_paths(planted: Planted) -> None:
    tree = planted(
        {
            **FLEET,
            ".treeplaneignore": b"# comment\n*.json\n/workspaces/root/7f/\n",
            f"{R}/apps/.treeplaneignore": b"!c.json\n/b.yml\n",
            f"{R}/shop/.treeplaneignore": b"web/workspace.yml\ndeep/\n",
            f"{R}/shop/x/deep/y.yaml": b"",
            f"{R}/shop/x/y.yaml": b"",
        }
    )
    assert sorted(paths_of(tree.workspaces())) == ["root", "root:shop"]
    assert own(tree, "root") == [f"{R}/a.yaml", f"{R}/apps/c.json"]
    assert own(tree, "root:shop") == [f"{R}/shop/x/y.yaml"]
    assert tree.at(f"{R}/7f/bank") is None
    assert tree.owner(f"{R}/7f/e.yaml") is None
    assert tree.find("root:bank") is None
    assert tree.find("root:shop:web") is None


def test_a_large_fleet_is_read_once_over(planted: Planted, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = planted({f"{R}/{i % 32:02x}/w{i}/workspace.yaml": b"" for i in range(2000)} | {f"{R}/a.yaml": b""})
    reads = []
    raw = repo.raw
    monkeypatch.setattr(repo, "raw", lambda *a: reads.append(a) or raw(*a))
    assert len(list(tree.workspaces())) == 2001
    assert len(reads) < 2050
