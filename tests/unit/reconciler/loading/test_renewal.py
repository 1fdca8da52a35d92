"""What another version of Treeplane ships: written workspace by workspace, last of all work, whatever comes between."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.happenings import Happening, Killed
from support.loadedfleet import LoadedFleet, configmap
from support.widgets import binding

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from reconciler.loading.judge import Judge
from reconciler.plan import bootstrap, system

R = "workspaces/root"
TYPE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: lab}\n"
EXTENDS = "spec: {extend: {with: [{name: universal, path: root}]}}\n"
BAD = "apiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n"
Files = dict[str, str | None]


def typed(name: str) -> str:
    return f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {{type: {{name: {name}, path: root}}}}\n"


FILES: Files = {
    f"{R}/lab.yaml": TYPE + EXTENDS,
    **{f"{R}/k{n}/workspace.yaml": typed("kube-compat") for n in range(2)},
    f"{R}/k0/app.yaml": configmap(),
    **{f"{R}/t{n}/workspace.yaml": typed("lab") for n in range(2)},
    **{f"{R}/u{n}/workspace.yaml": typed("universal") for n in range(2)},
    **{f"{R}/take{n}/workspace.yaml": "" for n in range(2)},
    **{f"{R}/take{n}/binding.json": binding("root:compute", "kubernetes", "kubernetes") for n in range(2)},
}


def _resource(schema: dict[str, Any]) -> dict[str, str]:
    return {"name": schema["spec"]["names"]["plural"], "group": schema["spec"]["group"]}


def schema(like: dict[str, Any], name: str) -> dict[str, Any]:
    names = {"plural": f"{name}s", "singular": name, "kind": name.title(), "listKind": f"{name.title()}List"}
    metadata = {**like["metadata"], "name": f"v1-36.{name}s.example.io"}
    return {**like, "metadata": metadata, "spec": {**like["spec"], "group": "example.io", "names": names}}


@contextmanager
def newer(number: int = 1) -> Iterator[None]:
    """As with another version: a type that is another, types that come and go, an export with one more schema, and one
    more object in clusters of Kubernetes' kinds."""
    types, export = system.workspace_types(), system.compute_export()
    universal = next(each for each in types if each["metadata"]["name"] == "universal")
    universal["spec"] = {**universal["spec"], "writes": ("Store", "Commit")[number % 2]}
    types = [each for each in types if each["metadata"]["name"] != "home"]
    types.append({**types[0], "metadata": {**types[0]["metadata"], "name": f"newer{number}"}})
    more = schema(export[0], f"gadget{number}")
    export = [more, *export]
    export[-1]["spec"]["resources"].append({**_resource(more), "schema": more["metadata"]["name"]})
    added = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"kube-new{number}"}}
    shipped = bootstrap.objects
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(system, "workspace_types", lambda: types)
        patch.setattr(system, "compute_export", lambda: export)
        patch.setattr(bootstrap, "objects", lambda groups, at: [*shipped(groups, at), added])
        patch.setattr(bootstrap, "digest", lambda: f"another{number}")
        yield


@contextmanager
def fleets(factory: pytest.TempPathFactory) -> Iterator[tuple[LoadedFleet, LoadedFleet]]:
    """Two that serve the same, of the version before."""
    folder = factory.mktemp("renewal")
    first = LoadedFleet(folder / "one")
    second = LoadedFleet(folder / "two", repo=first.repo, keys=first.keys)
    try:
        first.begin(FILES)
        second.load()
        assert first.held() == {}
        yield first, second
    finally:
        first.close()
        second.close()


def restarted(fleet: LoadedFleet) -> None:
    fleet.loader = fleet.new_loader()


def known(fleet: LoadedFleet) -> list[Any]:
    """What is served of each workspace, but for the commit that was the last to change it."""
    return [(r.path, r.cluster, r.type, r.served, r.errors, r.writes, r.builtins, r.origin) for r in fleet.records()]


def objects(fleet: LoadedFleet) -> dict[Key, bytes]:
    """But for the commit at which each was written last, which is that of the moment, and times of that; of what comes
    with the version that commit is the origin, too."""
    return {
        key: (_OF_ITS_ORIGIN if "newer" in key.name or "gadget" in key.name else _OF_THE_MOMENT).sub(b"", value)
        for key, value in fleet.everything().items()
    }


_OF_THE_MOMENT = re.compile(rb'"(treeplane.dev/source-commit|lastTransitionTime)":"[^"]*"')
_OF_ITS_ORIGIN = re.compile(rb'"(treeplane.dev/source-commit|lastTransitionTime|uid|creationTimestamp)":"[^"]*"')


def agree(one: LoadedFleet, other: LoadedFleet) -> None:
    mine, theirs = objects(one), objects(other)
    assert sorted(mine.items() ^ theirs.items()) == []
    assert known(one) == known(other)
    done(one, other)


def done(one: LoadedFleet, other: LoadedFleet) -> None:
    assert one.fleet().ships == other.fleet().ships
    assert one.store.scan_rows(Table.CONSUMERS) == other.store.scan_rows(Table.CONSUMERS)
    assert one.store.scan_rows(Table.RENEWAL) == other.store.scan_rows(Table.RENEWAL) == []


PUSHES: list[Files] = [
    {f"{R}/k1/more.yaml": configmap("more")},
    {f"{R}/k3/workspace.yaml": typed("kube-compat"), f"{R}/u0/app.yaml": configmap()},
    {f"{R}/lab.yaml": TYPE + EXTENDS + "# other\n", f"{R}/t1/app.yaml": configmap()},
    {f"{R}/lab.yaml": f"{TYPE}spec: {{writes: Store}}\n"},
    {f"{R}/take0/binding.json": None},
    {f"{R}/take1/app.yaml": configmap(), f"{R}/u0/workspace.yaml": typed("lab")},
    {f"{R}/k0/bad.yaml": BAD},
    {f"{R}/k0/bad.yaml": None},
    {f"{R}/u1": None, f"{R}/u2/workspace.yaml": typed("universal")},
]
MEND: Files = {
    f"{R}/k0/bad.yaml": None,
    f"{R}/u0/workspace.yaml": typed("universal"),
    f"{R}/u0/last.yaml": configmap("last"),
}
"""What is held keeps what it has, whatever ships, until it is mended."""
MOMENTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, len(PUSHES) - 1)), max_size=5)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(MOMENTS)
def test_what_is_interrupted_by_pushes_ends_as_what_was_done_at_once(
    tmp_path_factory: pytest.TempPathFactory, moments: list[tuple[int, int]]
) -> None:
    with fleets(tmp_path_factory) as (one, other), newer():
        restarted(one)
        for workspaces, push in moments:
            left = iter(range(workspaces))
            one.loader.renew(lambda left=left: next(left, None) is None)
            one.commit(PUSHES[push])
        assert one.loader.renew()
        restarted(other)
        assert other.loader.renew()
        one.commit(MEND)
        other.load()
        agree(one, other)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 12), st.sampled_from([None, *range(len(PUSHES))])), max_size=4))
def test_a_server_that_dies_over_it_ends_as_one_that_did_not(
    tmp_path_factory: pytest.TempPathFactory, deaths: list[tuple[int, int | None]]
) -> None:
    with fleets(tmp_path_factory) as (one, other), newer():
        happening = Happening(one)
        for writes, push in deaths:
            restarted(one)
            with suppress(Killed), happening.after(writes, _dies):
                one.loader.renew()
            restarted(one)
            if push is not None:
                one.commit(PUSHES[push])
        assert one.loader.renew()
        restarted(other)
        other.load()
        assert other.loader.renew()
        one.commit(MEND)
        other.load()
        agree(one, other)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), min_size=1, max_size=4))
def test_a_version_that_comes_before_the_last_one_is_done_is_gone_on_from(
    tmp_path_factory: pytest.TempPathFactory, versions: list[tuple[int, int]]
) -> None:
    """Up and down, interrupted each time."""
    with fleets(tmp_path_factory) as (one, other):
        for number, workspaces in versions:
            left = iter(range(workspaces))
            with newer(number):
                restarted(one)
                one.loader.renew(lambda left=left: next(left, None) is None)
                restarted(other)
                assert other.loader.renew()
        with newer(versions[-1][0]):
            assert one.loader.renew()
            done(one, other)
            assert known(one) == known(other)
            assert specs(one) == specs(other)
            for n in range(2):
                assert one.find(f"root:k{n}", "namespaces", f"kube-new{versions[-1][0]}", "") is not None


def specs(fleet: LoadedFleet) -> dict[Key, Any]:
    """Of what ships for others to take, and of what they take."""
    kinds = ("workspacetypes.tenancy", "apiexports.apis", "apiresourceschemas.apis", "apibindings.apis")
    found = {key: orjson.loads(value) for key, value in fleet.everything().items() if key.resource.startswith(kinds)}
    return {key: (obj["spec"], (obj.get("status") or {}).get("boundResources")) for key, obj in found.items()}


def _dies() -> None:
    raise Killed


@pytest.fixture
def served(empty: LoadedFleet) -> Iterator[LoadedFleet]:
    empty.begin(FILES)
    with newer():
        restarted(empty)
        yield empty


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of workspaces that are judged."""
    found: list[str] = []
    judge = Judge.judge

    def told(self: Judge, case: Any) -> Any:
        found.append(case.path)
        return judge(self, case)

    monkeypatch.setattr(Judge, "judge", told)
    return found


def test_one_workspace_after_the_other_is_written_and_others_ask_in_between(served: LoadedFleet) -> None:
    seen: list[str] = []

    def is_wanted() -> bool:
        seen.append(" ".join(r.path for r in served.records() if served.find(r.path, "namespaces", "kube-new1", "")))
        return False

    assert served.loader.renew(is_wanted)
    steps = [*dict.fromkeys(seen)]
    assert steps == ["", "root:k0", "root:k0 root:k1"]
    assert {r.path for r in served.records() if r.writes == "Commit"} >= {"root:t0", "root:u1", "root:a"}


def test_what_others_want_comes_first(served: LoadedFleet) -> None:
    """Nothing more than the workspace that is at work stands between a push and its load."""
    assert not served.loader.renew(lambda: True)
    assert served.find("root:k0", "namespaces", "kube-new1", "") is None
    served.commit({f"{R}/u0/app.yaml": configmap()})
    assert served.data("root:u0") == {"a": "b"}
    assert served.fleet().ships != "", "and it is not forgotten"
    assert served.loader.renew()
    assert served.find("root:k1", "namespaces", "kube-new1", "") is not None


def test_a_start_judges_nothing_for_what_ships_and_once_it_is_written_nothing_is(
    served: LoadedFleet, judged: list[str]
) -> None:
    served.load()
    served.loader.recheck()
    assert judged == []
    assert served.loader.renew()
    assert set(judged) >= {"root", "root:compute", "root:k0", "root:take0"}
    judged.clear()
    revision = served.store.revision()
    for _ in range(2):
        restarted(served)
        assert served.loader.renew()
    assert (judged, served.store.revision()) == ([], revision)


def test_it_goes_on_from_where_it_was(served: LoadedFleet, judged: list[str]) -> None:
    enough: Callable[[], bool] = lambda: "root:k1" in judged  # noqa: E731
    assert not served.loader.renew(enough)
    before = set(judged)
    judged.clear()
    restarted(served)
    assert served.loader.renew()
    assert not before & set(judged)


@pytest.mark.parametrize("writes", range(1, 6))
def test_who_goes_back_to_the_version_before_has_what_that_ships(empty: LoadedFleet, writes: int) -> None:
    """Wherever the other one ended, also before it noted how far it was."""
    empty.begin(FILES)
    export = empty.get("root:compute", "apiexports.apis.kcp.io", "kubernetes", "")["spec"]
    happening = Happening(empty)
    with newer():
        restarted(empty)
        with suppress(Killed), happening.after(writes, _dies):
            empty.loader.renew()
    restarted(empty)
    assert empty.loader.renew()
    assert empty.get("root:compute", "apiexports.apis.kcp.io", "kubernetes", "")["spec"] == export
    assert empty.store.scan_rows(Table.RENEWAL) == []


def test_only_who_has_something_of_it_is_judged(empty: LoadedFleet, judged: list[str]) -> None:
    empty.begin(FILES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "digest", lambda: "another")
        restarted(empty)
        judged.clear()
        assert empty.loader.renew()
    assert sorted(judged) == ["root", "root:compute", "root:k0", "root:k1"]
