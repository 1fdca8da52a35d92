"""Workspaces that appear and stand alone are judged by what differs, and come to what the phases come to."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML, Files
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_same, recover
from support.widgets import binding, export, schema

from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.model.tables import Table
from reconciler.layout.shapes import Shapes
from reconciler.loading.case import Case, Verdict
from reconciler.loading.gather import Gatherer
from reconciler.loading.newcomers import Newcomers

R = "workspaces/root"
ROWS = (Table.WORKSPACES, Table.CONSUMERS, Table.KEPT_SECRETS, Table.FLEET)
Said = tuple[dict[Any, bytes], dict[str, list[str]], dict[Any, bytes]]


def manifest(kind: str, name: str, *, api: str = "v1", namespace: str = "", **said: Any) -> str:
    place = {"namespace": namespace} if namespace else {}
    return orjson.dumps({"apiVersion": api, "kind": kind, "metadata": {"name": name, **place}, **said}).decode()


def everything(fleet: LoadedFleet) -> dict[Any, bytes]:
    """All objects and rows, with the names of files in errors."""
    found: dict[Any, bytes] = {}
    for resource in fleet.store.resources():
        found.update({tuple(record.key): record.value for record in fleet.store.scan(resource).records})
    for table in ROWS:
        found.update({(table, row.key): row.value for row in fleet.store.scan_rows(table)})
    return found


def loaded(directory: Path, commits: Iterable[Files], *, newcomers: bool) -> Said:
    """What is served after these, what is held, and what is served after all but the repository is lost."""
    with pytest.MonkeyPatch.context() as patch:
        if not newcomers:
            patch.setattr(Newcomers, "verdict", lambda *_: None)
            patch.setattr(Shapes, "read", lambda *_: None)
        with ExitStack() as stack:
            fleet = LoadedFleet(directory / str(newcomers), keys=directory / "keys")
            stack.callback(fleet.close)
            for files in commits:
                fleet.repo.commit(files)
                fleet.load()
            fleet.publish()
            new = LoadedFleet(directory / f"{newcomers} again", fleet.repo, keys=directory / "keys")
            stack.callback(new.close)
            new.load(new.recorded())
            return everything(fleet), fleet.held(), everything(new)


RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
TYPE = manifest("WorkspaceType", "mine", api="tenancy.kcp.io/v1alpha1", spec={"extend": {"with": []}})
QUOTED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings%}\ndata: {number: '?', other: \"x\"}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s%}\nstringData: {a: '?'}\ntype: 'a/?'\n"
TEXTS = ("1", "2", "3", "true", "_", "default")
PIECES = {
    **{f"quoted {text}": QUOTED.replace("%", "").replace("?", text) for text in TEXTS},
    **{f"secret {text}": SECRET.replace("%", "").replace("?", text) for text in TEXTS},
    "settings": configmap("settings", number="1"),
    "again": configmap("settings", number="2"),
    "elsewhere": configmap("settings", "shop"),
    "shop": manifest("Namespace", "shop"),
    "here": configmap("here", "default"),
    "two": f"{configmap('one')}---\n{configmap('two')}",
    "secret": manifest("Secret", "s", stringData={"a": "b"}),
    "role": manifest("ClusterRole", "r", api="rbac.authorization.k8s.io/v1", rules=[RULE]),
    "status": manifest("ConfigMap", "c", status={"a": "b"}),
    "marked": manifest("ConfigMap", "m").replace('"name":"m"', '"name":"m","annotations":{"a":"b","kcp.io/path":"x"}'),
    "unknown field": manifest("ConfigMap", "u", nope=1),
    "unknown kind": manifest("Gadget", "g"),
    "bad name": manifest("ConfigMap", "Not_one"),
    "no yaml": "a: [",
    "nothing": "# nothing\n",
    "default": manifest("Namespace", "default"),
    "schema": schema(),
    "export": export(),
    "binding": binding("root:a"),
    "type": TYPE,
    "workspace": manifest("Workspace", "w", api="tenancy.kcp.io/v1alpha1"),
}


def workspace(type_name: str = "", path: str = "root", **metadata: Any) -> str:
    spec = {"type": {"name": type_name, "path": path} if path else {"name": type_name}} if type_name else {}
    value = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "spec": spec}
    return orjson.dumps({**value, "metadata": metadata} if metadata else value).decode()


TYPES = [workspace(name) for name in ("universal", "organization", "kube-compat", "none")]
WORKSPACES = ["", *TYPES, workspace("mine", ""), workspace(name="a"), workspace(labels={"team": "seven"}), "spec: ["]
names = st.sampled_from(["a", "b", "c", "a/d", "b/e", "group/f", "Not_one"])
says = st.tuples(st.sampled_from(WORKSPACES), st.sets(st.sampled_from(sorted(PIECES)), max_size=3))


def files(said: dict[str, tuple[str, set[str]]]) -> dict[str, str]:
    out = {}
    for name, (workspace, pieces) in said.items():
        out[f"{R}/{name}/workspace.yaml"] = workspace
        out.update({f"{R}/{name}/{piece.replace(' ', '-')}.yaml": PIECES[piece] for piece in sorted(pieces)})
    return out


@settings(max_examples=15, deadline=None)
@given(st.lists(st.dictionaries(names, says, max_size=5), min_size=1, max_size=3))
def test_they_are_what_the_phases_make_of_them(histories: list[dict[str, tuple[str, set[str]]]]) -> None:
    first = {"treeplane.yaml": TREEPLANE_YAML, f"{R}/keep.yaml": "", f"{R}/type.yaml": TYPE}
    with TemporaryDirectory() as directory:
        commits: list[Files] = [first, *map(files, histories)]
        there = [loaded(Path(directory), commits, newcomers=each) for each in (True, False)]
    assert there[0] == there[1]


def test_all_but_the_first_of_a_kind_have_their_verdict_at_once(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    gathered: list[str] = []
    gather = Gatherer.gather

    def spy(gatherer: Gatherer, case: Case, *args: Any, **kwargs: Any) -> Any:
        gathered.append(case.path)
        return gather(gatherer, case, *args, **kwargs)

    monkeypatch.setattr(Gatherer, "gather", spy)
    some = {f"n{number}": (WORKSPACES[1], {"settings", "role"}) for number in range(6)}
    fleet.commit(files(some))
    assert len(gathered) <= 2
    assert fleet.data("root:n5", "settings") == {"number": "1"}


def test_what_nothing_happened_to_comes_back_at_once(
    fleet: LoadedFleet, another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the commit that is named, although it appeared in an earlier one."""
    some = {f"n{number}": (WORKSPACES[1], {"settings", "role"}) for number in range(6)}
    fleet.commit(files(some))
    fleet.commit({f"{R}/n3/later.yaml": configmap("later")})
    fleet.publish()
    asked: dict[str, bool] = {}
    verdict = Newcomers.verdict

    def spy(newcomers: Newcomers, case: Case) -> Verdict | None:
        found = verdict(newcomers, case)
        asked[case.path] = found is not None
        return found

    monkeypatch.setattr(Newcomers, "verdict", spy)
    new = recover(fleet, another)
    assert_same(new, fleet)
    assert {path for path, found in asked.items() if not found} & {*map("root:n{}".format, range(2, 6))} == {"root:n3"}
    assert new.record("root:n4").head == fleet.fleet().commit


def test_the_texts_of_each_are_its_own(fleet: LoadedFleet) -> None:
    some = {f"n{number}": ("", {f"quoted {TEXTS[number]}", f"secret {TEXTS[number]}"}) for number in range(6)}
    fleet.commit(files(some))
    for number, text in enumerate(TEXTS):
        assert fleet.data(f"root:n{number}", "settings") == {"number": text, "other": "x"}
        secret = fleet.get(f"root:n{number}", "secrets", "s")
        assert (secret["type"], b64decode(secret["data"]["a"])) == (f"a/{text}", text.encode())


def test_what_is_wrong_with_one_is_told_in_full(fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Verdict | None] = []
    verdict = Newcomers.verdict
    monkeypatch.setattr(Newcomers, "verdict", lambda *each: said.append(verdict(*each)) or said[-1])
    some = {f"n{number}": ("", {"settings"}) for number in range(4)}
    fleet.commit(files({**some, "n4": ("", {"bad name", "unknown field"})}))
    assert [each is None for each in said[2:]] == [False, False, True]
    assert list(fleet.held()) == ["root:n4"]
    assert len(fleet.held()["root:n4"]) == 2


def test_those_of_one_commit_are_written_as_they_stand_in_the_store(fleet: LoadedFleet) -> None:
    """Side by side, a parent before its children: so that a transaction touches few pages."""
    before = fleet.store.revision()
    paths = [f"{name}{number}" for name in ("m", "n") for number in range(9)]
    fleet.commit({f"workspaces/root/{p}{below}/workspace.yaml": "" for p in paths for below in ("", "/below")})
    written = [c.key.cluster for c in fleet.store.changes(before) if c.key.resource == LOGICAL_CLUSTERS]
    made = [each for each in written if each != "root"]
    parents = [fleet.record(f"root:{path}").cluster for path in paths]
    assert made[: len(paths)] == sorted(parents)
    assert made[len(paths) :] == sorted({*made} - {*parents})
