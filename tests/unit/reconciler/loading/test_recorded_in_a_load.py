"""What is recorded while commits are on their way into the store, and what a recovery and an observer make of it."""

from __future__ import annotations

import json
import re

import pytest
from support.happenings import C, Happening
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_same, recover
from support.widgets import binding, crd, export, schema

from apiserver.model.commits import own
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.loading import pins
from reconciler.loading.declared import Declarations
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.shown import Shown
from reconciler.statusbranch.recorded import RecordedFleet


def loader(fleet: LoadedFleet, store: Store) -> Loader:
    return Loader(store, fleet.mirror.repositories, Identities(fleet.keys / "identities"), fleet.secrets.of)


NEW, MORE = "workspaces/root/new", "workspaces/root/more"


@pytest.fixture
def happening(empty: LoadedFleet) -> Happening:
    made = Happening(empty)
    made.begin()
    return made


def recorded_in(happening: Happening, path: str) -> RecordedFleet:
    """What is recorded once a load came to a workspace and a controller wrote to it, before the server is killed."""
    fleet = happening.fleet
    served, head = fleet.fleet().commit, own(fleet.repo.head)

    def is_there() -> bool:
        record = tree.workspace_at(fleet.store, path)
        return record is not None and record.head == head

    def record() -> None:
        if fleet.find(path, "configmaps", "app") is not None:
            fleet.update(fleet.key(path, "configmaps", "app"), lambda obj: obj.update(status={"seen": 1}))
        happening.record(1)

    happening.die(is_there, record)
    recorded = fleet.recorded()
    assert recorded is not None
    assert (recorded.source, recorded.facts().arriving) == (served, (head,))
    return recorded


def test_a_workspace_that_is_past_what_is_named_comes_back_where_it_was(happening: Happening, another: Another) -> None:
    """Its objects are of the later commit, and so is what is recorded of them: a generation counts once."""
    fleet = happening.fleet
    happening.push({f"{A}/app.yaml": configmap(n="1"), f"{NEW}/workspace.yaml": "", f"{B}/app.yaml": configmap(n="1")})
    recorded = recorded_in(happening, "root:a")
    assert recorded.ahead()[A] == own(fleet.repo.head)
    new = recover(fleet, another)
    fleet.load()
    assert_same(new, fleet)
    fleet.publish()
    assert_same(recover(fleet, another, "after"), fleet)


def test_a_generation_that_was_recorded_counts_no_second_time(happening: Happening, another: Another) -> None:
    """What a manifest declares, which is brought back as the commit before says and then as its own does."""
    fleet = happening.fleet
    happening.push({f"{C}/crd.json": crd("v1", "colour", "string"), f"{C}/w.json": None, f"{C}/app.yaml": configmap()})
    recorded = recorded_in(happening, "root:c")
    assert recorded.ahead()[C] == own(fleet.repo.head)
    kind = "customresourcedefinitions.apiextensions.k8s.io"
    assert fleet.get("root:c", kind, "widgets.example.io")["metadata"]["generation"] == 2
    assert_same(recover(fleet, another), fleet)


def test_a_workspace_that_was_never_good_is_recorded_where_it_was_judged(
    happening: Happening, another: Another
) -> None:
    """Its Workspace says what the newest commit does, whenever it was held first."""
    fleet = happening.fleet
    happening.push({f"{NEW}/workspace.yaml": typed("nope"), f"{NEW}/app.yaml": configmap()})
    happening.load()
    served = own(fleet.repo.head)
    happening.push({f"{NEW}/workspace.yaml": typed("neither"), f"{A}/app.yaml": configmap(n="1")})
    head = own(fleet.repo.head)
    happening.die(lambda: fleet.record("root:new").judged == head, lambda: happening.record(1))
    recorded = fleet.recorded()
    assert recorded is not None
    assert recorded.source == served
    assert recorded.ahead()[NEW] == head
    new = recover(fleet, another)
    fleet.load()
    assert fleet.workspace("root:new")["metadata"]["generation"] == 2
    assert_same(new, fleet)
    fleet.publish()
    assert_same(recover(fleet, another, "after"), fleet)


def typed(name: str) -> str:
    head = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
    return json.dumps({**head, "spec": {"type": {"name": name, "path": "root"}}})


def test_what_a_controller_said_of_a_workspace_that_came_comes_back_with_it(
    happening: Happening, another: Another
) -> None:
    fleet = happening.fleet
    happening.push(
        {
            f"{NEW}/workspace.yaml": "",
            f"{NEW}/group/deep/workspace.yaml": "",
            f"{NEW}/group/deep/app.yaml": configmap(n="1"),
            f"{MORE}/workspace.yaml": "",
        }
    )
    recorded = recorded_in(happening, "root:new:deep")
    assert list(recorded.ahead()) == [f"{NEW}/group/deep"], "of the others nothing is known but that they came"
    new = recover(fleet, another)
    assert new.get("root:new:deep", "configmaps", "app")["status"] == {"seen": 1}
    fleet.load()
    assert_same(new, fleet)
    fleet.publish()
    assert_same(recover(fleet, another, "after"), fleet)


def test_who_takes_something_of_a_workspace_that_is_past_what_is_named_is_served_as_before(
    happening: Happening, another: Another
) -> None:
    """A consumer comes back with what it was bound to, also where its content would not fit what is offered now."""
    fleet = happening.fleet
    offer = {f"{A}/schema.json": schema("v2", "colour", "string"), f"{A}/export.json": export("v2", allow="v1->v2")}
    happening.push(offer)
    recorded_in(happening, "root:a")
    repo, head = fleet.repo, fleet.repo.head
    repo.reset(fleet.fleet().commit.id)
    new = recover(fleet, another)
    assert new.record("root:b").served
    assert new.record("root:b").errors == []
    assert new.find("root:b", "widgets.example.io", "w") is not None
    fleet.load()
    assert_same(new, fleet, at=False)
    repo.reset(head)
    fleet.load()
    new.load()
    assert_same(new, fleet, at=False)


def test_what_turned_and_turns_back_before_the_load_is_over_never_turned(
    happening: Happening, another: Another
) -> None:
    """A consumer is bound to an export that goes with the same commit, after what it says of that was recorded."""
    fleet, provider, consumer = happening.fleet, "workspaces/root/p", "workspaces/root/d"
    offer = {f"{provider}/workspace.yaml": "", f"{provider}/schema.json": schema(), f"{provider}/export.json": export()}
    taker = {f"{consumer}/workspace.yaml": "", f"{consumer}/app.yaml": configmap()}
    happening.push({**offer, **taker, f"{consumer}/binding.json": binding("root:nowhere")})
    happening.load()

    def valid(fleet: LoadedFleet) -> tuple[str, str]:
        found = fleet.condition(fleet.get("root:d", "apibindings.apis.kcp.io", "widgets", ""), "APIExportValid")
        return found["status"], found["lastTransitionTime"]

    before = valid(fleet)
    happening.push({provider: None})
    happening.load()
    [allowed] = set(re.findall(r"Allow-Delete: [0-9a-f]{40}", str(fleet.held())))
    happening.push({f"{consumer}/binding.json": binding("root:p")}, f"Remove it\n\n{allowed}\n")
    recorded_in(happening, "root:d")
    assert valid(fleet) != before
    assert valid(fleet)[0] == "True"
    new = recover(fleet, another)
    fleet.load()
    assert valid(fleet) == before
    assert valid(new) == before
    assert_same(new, fleet)
    head = fleet.publish()
    assert b"step" not in fleet.mirror.repository.blob(entry(fleet, head, f"{consumer}/_summary.yaml"))
    assert_same(recover(fleet, another, "after"), fleet)


def entry(fleet: LoadedFleet, commit: str, path: str) -> str:
    found = fleet.mirror.repository.entry_at(fleet.mirror.repository.commit(commit).tree, path)
    assert found is not None
    return found.id


def test_a_workspace_that_a_commit_on_its_way_took_away_stays_away(happening: Happening, another: Another) -> None:
    fleet = happening.fleet
    fleet.commit({f"{NEW}/workspace.yaml": "", f"{NEW}/below/workspace.yaml": ""})
    fleet.publish()
    happening.push({NEW: None, f"{A}/app.yaml": configmap(n="1")})
    happening.die(lambda: "root:new" not in fleet.paths(), happening.record)
    recorded = fleet.recorded()
    assert recorded is not None
    assert recorded.facts().arriving
    new = recover(fleet, another)
    fleet.load()
    assert_same(new, fleet, at=False)
    assert "root:new" not in new.paths()


def test_an_observer_shows_what_was_recorded_in_a_load(happening: Happening, another: Another) -> None:
    fleet, other = happening.fleet, another(happening.fleet, "observer", keys=happening.fleet.keys)
    shown = Shown(other.store, other.mirror.repository, lambda store: loader(other, store))
    first = other.recorded()
    assert first is not None
    shown.begin(first, "holder/1")
    happening.push(
        {
            f"{A}/app.yaml": configmap(n="1"),
            f"{NEW}/workspace.yaml": "",
            f"{NEW}/group/deep/workspace.yaml": "",
            f"{NEW}/group/deep/app.yaml": configmap(n="1"),
            f"{MORE}/workspace.yaml": "",
        }
    )
    for path in ("root:a", "root:new:deep"):
        recorded_in(happening, path)
        recorded = other.recorded()
        assert recorded is not None
        shown.follow(recorded, "holder/1")
        aside = another(fleet, f"aside-{len(path)}", keys=fleet.keys)
        aside.loader.begin(recorded.source, recorded)
        assert_same(other, aside)
    fleet.load()
    fleet.publish()
    recorded = other.recorded()
    assert recorded is not None
    shown.follow(recorded, "holder/1")
    assert_same(other, fleet)


def test_an_inventory_that_is_ahead_of_a_workspace_prunes_nothing(happening: Happening, another: Another) -> None:
    """Applied from a commit on its way, and the workspace was recovered at the one before: git says nothing of what is
    to go, also where the branch once went elsewhere from that commit and came back."""
    fleet = happening.fleet
    before = fleet.repo.head
    fleet.commit({f"{A}/extra.yaml": configmap("extra")})
    ahead = fleet.repo.head
    fleet.repo.reset(before)
    fleet.mirror.keep(ahead, before)
    fleet.load()
    declarations = Declarations(fleet.store, fleet.mirror.repositories)
    assert fleet.record("root:a").head != own(ahead)
    assert not declarations.declared("root:a", own(ahead), "", "configmaps", "default", "extra")


def test_a_pin_that_is_over_with_what_is_on_its_way_was_not_over_before(
    happening: Happening, another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A consumer comes back with what the pinned provider offered, though that ended on the way."""
    fleet, clock = happening.fleet, [1e9]
    monkeypatch.setattr(pins, "now", lambda: clock[0])
    pinned = serving(fleet.repo.head, "2030-01-01T00:00:00Z")
    offer = {f"{A}/schema.json": schema("v2", "colour", "string"), f"{A}/export.json": export("v2", allow="v1->v2")}
    fleet.commit({**offer, f"{A}/workspace.yaml": json.dumps(pinned)})
    assert fleet.held() == {}
    clock[0] = 5e9
    happening.push({f"{A}/app.yaml": configmap(n="1"), f"{B}/app.yaml": configmap(n="1")})
    recorded = recorded_in(happening, "root:a")
    assert recorded.ahead()[A] == own(fleet.repo.head)
    new = recover(fleet, another)
    assert new.get("root:b", "widgets.example.io", "w")["spec"] == {"size": 1}
    fleet.load()
    assert_same(new, fleet, at=False)


def serving(commit: str, until: str) -> dict[str, object]:
    head = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace"}
    return {**head, "spec": {"serve": {"commit": commit, "until": until}}}
