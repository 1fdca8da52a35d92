"""Whatever happens to files: what log and blame tell is what comparing everything with everything finds."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.histories import blamed, logged, set_by, words

ROOT = "workspaces/root"
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"
STATED = f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nmetadata: {{uid: {UID}}}\n"
Declared = dict[tuple[str, str], tuple[str, Any]]
"""By workspace's directory and name: the file within that, and the value."""


def configmap(name: str, value: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: '{value}'}}\n"


# -- log

FILES = [f"{ROOT}/{name}" for name in ("x.yaml", "a/x.yaml", "a/y.yaml", "a/more/z.yaml", "a/sub/x.yaml")]
MARKS = [f"{ROOT}/a/more/workspace.yaml", f"{ROOT}/a/sub/workspace.yaml", f"{ROOT}/.treeplaneignore"]
contents = st.lists(st.tuples(st.sampled_from("pqr"), st.integers(0, 1)), max_size=3, unique_by=lambda each: each[0])
edit = st.tuples(st.sampled_from(FILES), st.none() | contents)
mark = st.tuples(st.sampled_from(MARKS), st.booleans())
commits = st.lists(st.tuples(st.lists(edit, min_size=1, max_size=3), st.lists(mark, max_size=1)), max_size=8)


def brute(repo: FleetRepo, commit: str) -> Declared:
    """All that is declared, each name of a workspace by the first file that has it."""
    files = repo.files(commit)
    homes = [f.rpartition("/")[0] for f in files if f.endswith("/workspace.yaml")] + [ROOT]
    found: Declared = {}
    for file in sorted(files):
        home = max((each for each in homes if file.startswith(f"{each}/")), key=len, default="")
        hidden = f"{ROOT}/.treeplaneignore" in files and file.endswith("/y.yaml")
        if home and file.endswith("x.yaml") | file.endswith("y.yaml") | file.endswith("z.yaml") and not hidden:
            for each in yaml.safe_load_all(files[file]):
                found.setdefault((home, each["metadata"]["name"]), (file.removeprefix(f"{home}/"), each))
    return found


def told_by_hand(old: Declared, new: Declared) -> set[tuple[str, str]]:
    out = set()
    for key in old.keys() | new.keys():
        before, after = old.get(key), new.get(key)
        if before is None or after is None:
            change = "created" if before is None else "deleted"
        elif before[1] != after[1]:
            change = "configured"
        elif before[0] != after[0]:
            change = "moved"
        else:
            continue
        out.add((key[0], f"{change} ConfigMap default/{key[1]}"))
    return out


@settings(max_examples=40)
@given(commits)
def test_log_tells_what_comparing_all_files_finds(edits: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        repo = FleetRepo(Path(directory) / "fleet.git")
        repo.commit(
            {
                "treeplane.yaml": TREEPLANE_YAML,
                f"{ROOT}/keep.yaml": configmap("keep", 0),
                f"{ROOT}/a/workspace.yaml": "",
            }
        )
        for changed, marks in edits:
            files: dict[str, str | None] = {}
            for file, said in changed:
                # A name stands once in a workspace: files of one are told apart by it.
                text = "---\n".join(configmap(f"{name}{FILES.index(file)}", value) for name, value in said or ())
                files[file] = text if said is not None else None
            for file, there in marks:
                # Nothing is left behind in a workspace that ends.
                if there or not any(
                    repo_file.startswith(file.rpartition("/")[0] + "/") for repo_file in repo.files(repo.head)
                ):
                    files[file] = "y.yaml\n" if there and "ignore" in file else "" if there else None
            present = repo.files(repo.head)
            repo.commit({f: t for f, t in files.items() if t is not None or f in present})
        history = repo.commits
        found = {entry.commit.id: entry for entry in logged(repo).entries}
        for before, commit in pairwise(history):
            by_hand = told_by_hand(brute(repo, before), brute(repo, commit))
            steps = found[commit].workspaces if commit in found else ()
            assert {(step.directory, each) for step in steps for each in words(step) if "ConfigMap" in each} == by_hand
        # Of one workspace it is the same.
        for place in ("root", "root:a"):
            alone = {entry.commit.id: entry.workspaces for entry in logged(repo, place).entries}
            whole = {c: tuple(s for s in e.workspaces if s.path == place) for c, e in found.items()}
            assert alone == {commit: steps for commit, steps in whole.items() if steps}


# -- blame

fields = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2), max_size=4)
happening = st.one_of(
    st.tuples(st.just("set"), fields),
    st.tuples(st.just("labels"), fields),
    st.tuples(
        st.just("items"), st.lists(st.tuples(st.sampled_from("uvw"), st.integers(0, 1)), unique_by=lambda i: i[0])
    ),
    st.tuples(st.sampled_from(["file", "together", "move", "break", "mend", "remark", "elsewhere"]), st.none()),
)


class Model:
    """An object, its file, and by field the commit that set it."""

    def __init__(self, repo: FleetRepo) -> None:
        self.repo, self.directory, self.file, self.other = repo, f"{ROOT}/a", "one.yaml", False
        self.data: dict[str, int] = {}
        self.labels: dict[str, int] = {}
        self.items: list[tuple[str, int]] = []
        self.said: dict[str, Any] = {}
        self.set_in: dict[str, str] = {}
        self.stated, self.broken, self.number = False, False, 0

    def leaves(self) -> dict[str, Any]:
        found: dict[str, Any] = {"apiVersion": "example.io/v1", "kind": "Thing", "metadata.name": "thing"}
        for at, values in (("metadata.labels", self.labels), ("data", self.data)):
            found |= {f"{at}.{key}": str(value) for key, value in values.items()}
        for name, value in self.items:
            found |= {f"items[name={name}].name": name, f"items[name={name}].value": value}
        return found

    def text(self) -> str:
        value: dict[str, Any] = {"apiVersion": "example.io/v1", "kind": "Thing"}
        value["metadata"] = {"name": "thing"} | (
            {"labels": {k: str(v) for k, v in self.labels.items()}} if self.labels else {}
        )
        value |= {"data": {k: str(v) for k, v in self.data.items()}} if self.data else {}
        value |= {"items": [{"name": name, "value": v} for name, v in self.items]} if self.items else {}
        before = configmap("other", 0) + "---\n" if self.other else ""
        return f"# {self.number}\n{before}{yaml.safe_dump(value, sort_keys=False)}"

    def commit(self, was: str = "") -> None:
        path = f"{self.directory}/{self.file}"
        text = "a: [b" if self.broken else self.text()
        mark = {f"{self.directory}/workspace.yaml": STATED if self.stated else ""}
        gone = {was: None} if was and was != path else {}
        made = self.repo.commit({**gone, **mark, path: text, f"{self.directory}/keep.yaml": configmap("keep", 1)})
        if not self.broken:
            now = self.leaves()
            for field, value in now.items():
                if field not in self.said or self.said[field] != value:
                    self.set_in[field] = made
            self.said = now

    def happens(self, what: str, value: Any) -> None:
        was = f"{self.directory}/{self.file}"
        self.number += what not in ("move", "elsewhere")  # of which one changes nothing else
        match what:
            case "set":
                self.data = value
            case "labels":
                self.labels = value
            case "items":
                self.items = value
            case "file" if not self.broken:
                self.file = "two.yaml" if self.file == "one.yaml" else "one.yaml"
            case "together":
                self.other = not self.other
            case "move" if not self.broken:
                was, self.stated = self.directory, True
                self.directory = f"{ROOT}/b" if self.directory == f"{ROOT}/a" else f"{ROOT}/a"
            case "break":
                self.broken = True
            case "mend":
                self.broken = False
            case "elsewhere":
                self.repo.commit({f"{ROOT}/c/x{len(self.repo.commits)}.yaml": configmap("x", 0)})
                return
        self.commit(was)


@settings(max_examples=50)
@given(st.lists(happening, max_size=12))
def test_blame_names_the_commit_that_set_each_field_last(happenings: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        repo = FleetRepo(Path(directory) / "fleet.git")
        repo.commit({"treeplane.yaml": TREEPLANE_YAML, f"{ROOT}/keep.yaml": configmap("keep", 0)})
        model = Model(repo)
        model.commit()
        for what, value in happenings:
            model.happens(what, value)
        if model.broken:
            model.broken = False
            model.commit()
        place = "root:" + model.directory.rpartition("/")[2]
        found = blamed(repo, "thing/thing", workspace=place)
        assert {each.field: each.value for each in found.fields} == model.leaves()
        if not model.items or len({name for name, _ in model.items}) == len(model.items):
            assert set_by(found) == {field: model.set_in[field] for field in model.leaves()}
        # Each line is the one on which the field stands, in the commit that set it.
        for each in found.fields:
            line = repo.files(found.commits[each.commit][0].id)[each.file].splitlines()[each.line - 1]
            assert each.field.replace("]", ".").rpartition(".")[2] in line, each
