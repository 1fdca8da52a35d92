"""`treeplane init --from`: what it writes validates, nothing else is touched, and every file is taken or listed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st
from support.adoptable import (
    ARGO,
    FLUX,
    OVERLAYS,
    PLAIN,
    application,
    configmap,
    definition,
    deployment,
    flux,
    kustomization,
)

from reconciler.__main__ import main
from reconciler.commands.adopting.adoption import adopt
from reconciler.commands.failure import Failure

Directory = Callable[[Mapping[str, str]], Path]


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["init", *words])


def everything(top: Path) -> dict[str, tuple[int, int, bytes]]:
    """By path mode, time and content; of a link where it leads."""
    found = {}
    for each in sorted(top.rglob("*")):
        data = os.fsencode(each.readlink()) if each.is_symlink() else each.read_bytes() if each.is_file() else b""
        found[str(each.relative_to(top))] = (each.lstat().st_mode, each.lstat().st_mtime_ns, data)
    return found


@pytest.mark.parametrize("files", [PLAIN, FLUX, ARGO, OVERLAYS], ids=["plain", "flux", "argo", "overlays"])
def test_what_is_written_validates(directory: Directory, files: Mapping[str, str]) -> None:
    if files in (FLUX, OVERLAYS) and shutil.which("kubectl") is None:
        pytest.skip("kubectl is not on PATH")
    source = directory(files)
    before = everything(source)
    done = run("--from", "mine", "fleet", "-o", "json")
    assert (done.exit_code, json.loads(done.output)["problems"]) == (0, []), done.output
    assert everything(source) == before
    for copied in json.loads(done.output)["files"]:
        assert Path("fleet", copied["to"]).read_text() == files[copied["from"]]
    assert CliRunner().invoke(main, ["validate", "fleet"]).exit_code == 0


def test_what_is_told(directory: Directory) -> None:
    directory(PLAIN)
    done = run("--from", "mine", "fleet")
    assert "root:shop created: 2 files of shop; bound: kubernetes; Namespaces declared: shop\n" in done.output
    assert "  README.md: no manifest by its name\n" in done.output
    assert "\n2 workspaces created in fleet, 3 files taken, 3 left out\n" in done.output
    assert "\nnext:\n  cd fleet\n  git init --initial-branch main\n" in done.output


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_dry_run_tells_the_same_and_writes_nothing(directory: Directory, form: str) -> None:
    directory(PLAIN)
    shown = run("--from", "mine", "fleet", "--dry-run", "-o", form)
    assert not Path("fleet").exists()
    assert "would be created in fleet" in run("--from", "mine", "fleet", "--dry-run").output
    said, done = yaml.safe_load(shown.output), yaml.safe_load(run("--from", "mine", "fleet", "-o", form).output)
    assert said["dryRun"]
    assert {key: said[key] for key in ("workspaces", "files", "created", "left")} == {
        key: done[key] for key in ("workspaces", "files", "created", "left")
    }


def test_what_is_missed_is_1(directory: Directory) -> None:
    directory({"a/a.yaml": configmap("a"), "a/b.yaml": "apiVersion: v1\nkind: ConfigMap\n"})
    done = run("--from", "mine", "fleet")
    assert (done.exit_code, Path("fleet/workspaces/root/a/a.yaml").is_file()) == (1, True)
    assert "  a/b.yaml: " in done.output


def test_what_is_wrong_in_the_result_is_told_and_is_1(directory: Directory) -> None:
    directory({"a/a.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: 5}\n"})
    done = run("--from", "mine", "fleet")
    assert done.exit_code == 1
    assert "wrong in what is written:\n  workspaces/root/a/a.yaml" in done.output


def test_where_nothing_can_be_served_nothing_is_written(directory: Directory) -> None:
    directory({"README.md": "x"})
    done = run("--from", "mine", "fleet")
    assert (done.exit_code, Path("fleet").exists()) == (1, False)
    assert "nothing is written" in done.output


def test_lines_are_bounded(directory: Directory) -> None:
    directory({"a.yaml": configmap("a")} | {f"{n}.txt": "" for n in range(30)})
    done = run("--from", "mine", "fleet", "--dry-run")
    assert "  and 10 more: -o json lists them" in done.output
    assert done.output.count(".txt") == 20


@pytest.mark.parametrize(
    ("to", "why"),
    [("mine", "left as it is"), ("mine/fleet", "left as it is"), ("link", "left as it is"), ("full", "not empty"),
     ("mine/../mine/x", "left as it is")],
)  # fmt: skip
def test_it_is_written_elsewhere_and_over_nothing(directory: Directory, to: str, why: str) -> None:
    source = directory(PLAIN)
    before = everything(source)
    Path("full").mkdir()
    Path("full/a").write_text("mine")
    Path("link").symlink_to("mine/shop")
    done = run("--from", "mine", to)
    assert (done.exit_code, why in done.output) == (2, True), done.output
    assert everything(source) == before
    assert [each.name for each in Path("full").iterdir()] == ["a"]


def test_an_empty_repository_is_a_place(directory: Directory) -> None:
    directory(PLAIN)
    subprocess.run(["git", "init", "--quiet", "--initial-branch", "trunk", "fleet"], check=True)
    done = run("--from", "mine", "fleet")
    assert "up . --branch trunk\n" in done.output
    assert "git init" not in done.output


def test_what_is_asked_wrongly(directory: Directory) -> None:
    source = directory(PLAIN)
    assert run("--dry-run").exit_code == 2
    assert run("--from", "nowhere", "fleet").exit_code == 2
    (source / "treeplane.yaml").write_text("")
    done = run("--from", "mine", "fleet")
    assert (done.exit_code, "is a fleet" in done.output) == (2, True)


def test_links_and_special_files_are_not_opened(directory: Directory, tmp_path: Path) -> None:
    source = directory({"a/a.yaml": configmap("a")})
    (tmp_path / "secret.yaml").write_text(configmap("secret"))
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/b.yaml").write_text(configmap("b"))
    (source / "a/link.yaml").symlink_to(tmp_path / "secret.yaml")
    (source / "a/inside.yaml").symlink_to("a.yaml")
    (source / "all").symlink_to(tmp_path / "outside")
    (source / "loop").symlink_to(".")
    os.mkfifo(source / "a/pipe.yaml")
    found = adopt(source, Path("fleet"))
    assert set(found.plan.copied.values()) == {"a/a.yaml"}
    reasons = {each.path: each.reason for each in found.plan.left}
    assert all("symbolic link" in reasons[each] for each in ("a/link.yaml", "a/inside.yaml", "all", "loop"))
    assert reasons["a/pipe.yaml"] == "is no regular file"
    assert not any(each.is_symlink() for each in Path("fleet").rglob("*"))


def test_what_only_its_owner_may_read_stays_so(directory: Directory) -> None:
    source = directory({"a/a.yaml": configmap("a"), "a/b.yaml": configmap("b")})
    (source / "a/a.yaml").chmod(0o600)
    adopt(source, Path("fleet"))
    modes = [Path("fleet/workspaces/root/a", name).stat().st_mode & 0o077 for name in ("a.yaml", "b.yaml")]
    assert modes[0] == 0 != modes[1]


def test_names_that_nobody_can_read_are_told_in_escapes(directory: Directory) -> None:
    source = directory({"a/a.yaml": configmap("a"), "a/\x1b[31m.yaml": configmap("b")})
    (source / os.fsdecode(b"\xff.yaml")).write_text(configmap("c"))
    done = run("--from", "mine", "fleet")
    assert "\x1b" not in done.output
    assert "a/\\x1b[31m.yaml: its name" in done.output
    assert "\\xff.yaml: its name" in done.output
    json.loads(run("--from", "mine", "other", "--dry-run", "-o", "json").output)


def test_what_nobody_may_read_and_what_is_too_deep_is_listed(directory: Directory) -> None:
    deep = "/".join(["d"] * 50)
    directory({"a/a.yaml": configmap("a"), f"{deep}/a.yaml": configmap("a"), ".git/config": "x", "b/.git": "x"})
    left = {each.path: each.reason for each in adopt(Path("mine"), Path("fleet")).plan.left}
    assert {"git's own"} == {left[".git"], left["b/.git"]}
    assert any("in one another" in each for each in left.values())


def test_too_many_files_are_refused(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    source = directory({f"{n}.yaml": configmap(f"n{n}") for n in range(5)})
    monkeypatch.setattr("reconciler.commands.adopting.lookedat._MOST", 4)
    with pytest.raises(Failure, match="more than 4 files"):
        adopt(source, Path("fleet"))


def test_what_is_too_much_to_keep_is_listed(directory: Directory, monkeypatch: pytest.MonkeyPatch) -> None:
    source = directory({"a.yaml": configmap("a"), "b.yaml": configmap("b")})
    monkeypatch.setattr("reconciler.commands.adopting.lookedat._ALL", len(configmap("a")))
    assert [each.path for each in adopt(source, Path("fleet")).plan.left] == ["b.yaml"]


_NAMES = st.sampled_from(
    ["a", "b", "A_b", "base", "clusters", "workspace.yaml", "kustomization.yaml", "Chart.yaml", "apis.yaml", ".git",
     "shared", "compute", "x.yaml", "y.json", "values.yaml", ".treeplaneignore", "namespaces.yaml", "c\n.yaml", "ü"]
)  # fmt: skip
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_TEXTS = st.one_of(
    st.sampled_from([
        configmap("a"), configmap("a", "x"), configmap("b", "default"), deployment("a", "y"), definition("Widget"),
        flux("a", "./a"), flux("b", "./"), flux("c", "../.."), application("a", "a/b"), application("c", "/etc"),
        kustomization("../base"), kustomization("../a", "x.yaml"), kustomization("."), kustomization("x.yaml"),
        kustomization("../..", "../../.."), "apiVersion: v2\nname: a\n", "{{ .Values.a }}", "a: [", "",
        "apiVersion: lab.example/v1\nkind: Widget\nmetadata: {name: a}\n", "resources: 5\n", "spec: {path: [a]}\n",
        "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\n"
        "spec: {generators: [5, {git: 5}], template: {spec: {sources: [{path: a}, 5]}}}\n",
    ]),
    st.text(max_size=40),
)  # fmt: skip


@given(
    files=st.dictionaries(_PATHS, _TEXTS, max_size=8),
    links=st.dictionaries(_PATHS, st.sampled_from(["/etc", "..", "a", "../outside", "x.yaml"]), max_size=2),
)
@settings(max_examples=25, deadline=None)
def test_whatever_it_holds_it_stays_as_it_is_and_each_file_is_taken_or_listed(
    files: dict[str, str], links: dict[str, str]
) -> None:
    with TemporaryDirectory() as scratch:
        top = Path(scratch)
        source = top / "mine"
        source.mkdir()
        (top / "outside").mkdir()
        (top / "outside/o.yaml").write_text(configmap("outside"))
        for path, text in files.items():
            _put(source / path, lambda at, text=text: at.write_bytes(text.encode("utf-8", "replace")))
        for path, target in links.items():
            _put(source / path, lambda at, target=target: at.symlink_to(target))
        before = everything(source), everything(top / "outside")

        found = adopt(source, top / "fleet")

        assert (everything(source), everything(top / "outside")) == before
        assert {each.name for each in top.iterdir()} <= {"mine", "outside", "fleet"}
        for to, path in found.plan.copied.items():
            assert (top / "fleet" / to).read_bytes() == (source / path).read_bytes()
        written = {str(each.relative_to(top / "fleet")) for each in (top / "fleet").rglob("*") if each.is_file()}
        assert written == ({*found.plan.copied, *found.plan.made} if found.plan.workspaces else set())
        taken, left = set(found.plan.copied.values()), {each.path for each in found.plan.left}
        for path in before[0]:
            at = source / path
            if at.is_symlink() or not at.is_dir():
                parts = path.replace("\n", "\\n").split("/")
                listed = any("/".join(parts[:n]) in left for n in range(1, len(parts) + 1))
                assert (path in taken) != listed, path


def _put(at: Path, make: Callable[[Path], object]) -> None:
    """Where that can be: a file may stand in the way."""
    try:
        at.parent.mkdir(parents=True, exist_ok=True)
        if not at.exists() and not at.is_symlink():
            make(at)
    except (FileExistsError, NotADirectoryError):
        pass
