"""Workspaces that take each other's APIs, parents that take their children's: whatever the order, one world."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers, assert_same
from support.widgets import binding, export, schema, widget

Files = dict[str, str | None]

CHILD = f"{A}/child"


def renamed(text: str) -> str:
    return text.replace("widgets", "gadgets").replace("Widget", "Gadget").replace("widget", "gadget")


def offering(directory: str, text: Callable[[str], str] = lambda text: text) -> Files:
    return {f"{directory}/schema.json": text(schema()), f"{directory}/export.json": text(export())}


def taking(directory: str, path: str, text: Callable[[str], str] = lambda text: text) -> Files:
    bound, made = text(binding("PATH")).replace("PATH", path), text(widget(size=1))
    return {f"{directory}/binding.json": bound, f"{directory}/w.json": made}


EACH_OTHER: Files = {
    **offering(A),
    **taking(A, "root:b", renamed),
    **offering(B, renamed),
    **taking(B, "root:a"),
}
CHILDS: Files = {f"{CHILD}/workspace.yaml": "", **offering(CHILD), **taking(A, "root:a:child")}
ROOTS: Files = {**offering(A), **taking("workspaces/root", "root:a")}
GRANDCHILDS: Files = {
    f"{CHILD}/workspace.yaml": "",
    f"{CHILD}/below/workspace.yaml": "",
    **offering(f"{CHILD}/below"),
    **taking(A, "root:a:child:below"),
    **offering(A, renamed),
    **taking(CHILD, "root:a", renamed),
}
WORLDS = pytest.mark.parametrize(
    "files", [EACH_OTHER, CHILDS, ROOTS, GRANDCHILDS], ids=["each other", "child", "root", "grandchild"]
)


@WORLDS
def test_a_cold_start_serves_them(empty: LoadedFleet, files: Files) -> None:
    empty.begin({path: text for path, text in files.items() if text is not None})
    assert empty.held() == {}
    for record in empty.records():
        for key in empty.store.scan("apibindings.apis.kcp.io", record.cluster).records:
            bound = json.loads(key.value)["status"]
            assert bound["phase"] == "Bound"
            assert all(resource["schema"]["UID"] for resource in bound["boundResources"])


@WORLDS
def test_a_commit_a_recovery_and_a_first_load_agree(fleet: LoadedFleet, another: Another, files: Files) -> None:
    fleet.commit(files)
    assert fleet.held() == {}
    recovered = assert_recovers(fleet, another)
    first = another(fleet, "first", keys=fleet.keys)
    first.load()
    assert first.held() == {}
    recovered.recheck(recovered.paths())
    assert recovered.all_changes() == []


@WORLDS
def test_one_that_is_held_is_found_so_whoever_comes_first(fleet: LoadedFleet, another: Another, files: Files) -> None:
    """What a held provider's manifests offer counts for nothing once its verdict is in."""
    providers = {path.rpartition("/")[0] for path in files if path.endswith("export.json")}
    bad: Files = {f"{directory}/bad.yaml": "kind: [" for directory in providers}
    fleet.commit({**files, **bad})
    held = fleet.held()
    assert {f"workspaces/{path.replace(':', '/')}" for path in held} >= providers
    recovered = assert_recovers(fleet, another, share=True)
    for each in (fleet, recovered):
        if each is fleet:
            each.commit(dict.fromkeys(bad))
        else:
            each.load()
        assert each.held() == {}
    assert_same(recovered, fleet)


def test_a_long_chain_of_providers_is_no_matter_of_depth(empty: LoadedFleet) -> None:
    """Each takes what the next one offers and offers what it needs that for; the first load begins at the wrong end."""
    count = 150
    files: dict[str, str] = {}
    for number in range(count):
        directory = f"workspaces/root/w{number:03}"

        def named(text: str, number: int = number) -> str:
            return text.replace("widgets", f"widgets{number}").replace("Widget", f"Widget{number}")

        files[f"{directory}/workspace.yaml"] = ""
        files |= {k: v for k, v in offering(directory, named).items() if v is not None}
        if number + 1 < count:

            def next_one(text: str, number: int = number) -> str:
                return text.replace("widgets", f"widgets{number + 1}").replace("Widget", f"Widget{number + 1}")

            files |= {k: v for k, v in taking(directory, f"root:w{number + 1:03}", next_one).items() if v is not None}
    empty.begin(files)
    assert empty.held() == {}


def test_types_that_ship_are_there_whatever_root_holds(empty: LoadedFleet) -> None:
    empty.begin({"workspaces/root/bad.yaml": "kind: ["})
    assert set(empty.held()) == {"root"}
    assert not empty.record("root").served
    assert (empty.record("root:a").type, empty.record("root:a").served) == ("root:organization", True)
    empty.commit({"workspaces/root/bad.yaml": None, f"{A}/app.yaml": configmap(a="c")})
    assert empty.held() == {}
    assert empty.record("root:a").type == "root:organization"


def test_a_circle_in_which_each_is_good_only_without_the_other_comes_to_an_end(fleet: LoadedFleet) -> None:
    """A takes what B offered until now, and B, which offers it no more, what A offers from now on."""
    fleet.commit(offering(B))
    fleet.commit(
        {
            **taking(A, "root:b"),
            **offering(A, renamed),
            f"{B}/schema.json": None,
            f"{B}/export.json": None,
            **taking(B, "root:a", renamed),
        }
    )
    held = fleet.held()
    fleet.recheck(fleet.paths())
    assert fleet.held() == held


def test_a_held_workspace_is_judged_whole(fleet: LoadedFleet) -> None:
    """What holds it may stand in a file that the next commit leaves alone."""
    fleet.commit({f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)})
    fleet.commit({f"{B}/binding.json": binding("root:a", "other"), f"{B}/app.yaml": configmap(a="c")})
    [error] = fleet.held()["root:b"]
    fleet.commit({f"{B}/binding.json": None})
    assert fleet.held()["root:b"] == [error]
