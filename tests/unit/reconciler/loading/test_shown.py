"""A server that only observes shows at each status commit what a recovery from it would give, at the cost of what
differs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, Object, configmap
from support.sealing import AgeKey, encrypted, secret

from apiserver.auth.requiredgroups import requirements
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Store
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.shown import Shown
from reconciler.statusbranch.recorded import RecordedFleet

C = "workspaces/root/c"
EXPORT = """\
apiVersion: apis.kcp.io/v1alpha1
kind: APIExport
metadata: {name: gadgets}
spec: {latestResourceSchemas: [%s.gadgets.example.io]}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: %s.gadgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
BINDING = """\
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: gadgets}
spec: {reference: {export: {path: root:a, name: gadgets}}}
"""
GADGET = "apiVersion: example.io/v1\nkind: Gadget\nmetadata: {name: g}\nspec: {size: %d}\n"
TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: lab}
spec: {extend: {with: [{name: kube-compat, path: root}]}}
"""
LAB = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: lab, path: root}}\n"
SHOP = {
    f"{A}/export.yaml": EXPORT % ("v1", "v1"),
    f"{B}/binding.yaml": BINDING,
    f"{B}/g.yaml": GADGET % 1,
    "workspaces/root/type.yaml": TYPE,
    f"{C}/workspace.yaml": LAB,
    f"{C}/app.yaml": configmap(),
}


class Observer:
    """Over the repository of a fleet, with a store of its own."""

    def __init__(self, fleet: LoadedFleet, other: LoadedFleet) -> None:
        self.fleet, self.other = fleet, other
        self.shown = Shown(other.store, other.mirror.repository, lambda store: loader(other, store))

    def recorded(self) -> RecordedFleet:
        found = self.other.recorded()
        assert found is not None
        return found

    def begin(self) -> None:
        self.shown.begin(self.recorded(), "them/1")

    def follow(self) -> list[str]:
        return self.shown.follow(self.recorded(), "them/1")


def loader(fleet: LoadedFleet, store: Store) -> Loader:
    identities, secrets = Identities(fleet.keys / "identities"), fleet.secrets
    return Loader(store, fleet.mirror.repositories, identities, secrets.of, keys=secrets.keys_of)


@pytest.fixture
def observer(empty: LoadedFleet, another: Callable[..., LoadedFleet]) -> Observer:
    empty.begin(SHOP)
    assert empty.held() == {}
    empty.publish()
    made = Observer(empty, another(empty, "observer", keys=empty.keys))
    made.begin()
    return made


def world(fleet: LoadedFleet) -> dict[str, Any]:
    """Objects, records and summaries."""
    records = {
        r.path: (r.cluster, r.type, r.served, r.commit, r.origin, r.errors, r.directory, r.writes, r.builtins)
        for r in fleet.records()
    }
    summaries = {r.path: tree.summary(fleet.store, r.path) for r in fleet.records()}
    tables = {table.value: sorted(row.key for row in rows(fleet.store, table)) for table in (Table.HELD, Table.LEAVING)}
    return {"objects": fleet.everything(), "records": records, "summaries": summaries, "tables": tables}


def same(one: LoadedFleet, other: LoadedFleet) -> bool:
    here, there = world(one), world(other)
    differ = [
        f"{part} {key}: {here[part].get(key)} and recovered {there[part].get(key)}"
        for part in here
        for key in sorted(here[part].keys() | there[part].keys())
        if here[part].get(key) != there[part].get(key)
    ]
    assert not differ, "\n".join(differ)
    return True


def recovered(observer: Observer, another: Callable[..., LoadedFleet], name: str) -> LoadedFleet:
    fresh = another(observer.fleet, name, keys=observer.fleet.keys)
    recorded = fresh.recorded()
    assert recorded is not None
    loader(fresh, fresh.store).load(recorded.source, recorded)
    return fresh


def gadget(fleet: LoadedFleet) -> Any:
    return fleet.key("root:b", "gadgets.example.io", "g")


def test_it_begins_with_a_recovery_and_says_who_holds(observer: Observer, another: Callable[..., LoadedFleet]) -> None:
    found = observer.other.fleet()
    assert (found.loaded, found.holder, found.shown) == (True, "them/1", observer.recorded().commit)
    assert same(observer.other, recovered(observer, another, "fresh"))


def test_encrypted_secrets_are_shown_as_far_as_there_are_keys(observer: Observer) -> None:
    key, fleet = AgeKey(), observer.fleet
    key.write(fleet.keys / "age" / "root:a")
    fleet.recheck(fleet.secrets.changed())
    fleet.commit(
        {f"{A}/s.yaml": encrypted(secret(password="x"), key), f"{B}/s.yaml": encrypted(secret(password="x"), key)}
    )
    fleet.publish()
    observer.follow()  # whose own keys nobody has looked for yet
    assert observer.other.find("root:a", "secrets", "app") is None
    changed = observer.other.secrets.changed()
    assert changed == {"root:a"}
    observer.shown.follow(observer.recorded(), "them/1", changed)
    assert observer.other.get("root:a", "secrets", "app")["data"] == {"password": "eA=="}
    assert observer.other.find("root:b", "secrets", "app") is None
    assert observer.other.record("root:a").locked == [] and observer.other.record("root:b").locked != []
    assert same(observer.other, fleet)


def test_what_a_store_held_before_is_forgotten(observer: Observer, another: Callable[..., LoadedFleet]) -> None:
    """Decisions that never came to the branch, and objects that no commit knows of."""
    observer.other.update(gadget(observer.other), lambda obj: obj.update(status={"ours": True}))
    observer.begin()
    assert same(observer.other, recovered(observer, another, "fresh"))


def test_statuses_and_decisions_are_shown_as_the_holder_wrote_them(
    observer: Observer, another: Callable[..., LoadedFleet]
) -> None:
    def said(obj: Object) -> None:
        obj["status"] = {"ready": True}
        obj["metadata"]["finalizers"] = ["example.io/cleanup"]
        obj["metadata"]["annotations"]["internal.scheduling.kcp.io/selected"] = "x"

    observer.fleet.update(gadget(observer.fleet), said)
    observer.fleet.publish()
    before = observer.other.store.revision()
    assert observer.follow() == ["root:b"]
    written = [c.key.resource.partition(":")[0] for c in observer.other.store.changes(before)]
    assert written == ["gadgets.example.io"], "what did not change is not written"
    assert observer.other.get("root:b", "gadgets.example.io", "g")["status"] == {"ready": True}
    assert same(observer.other, recovered(observer, another, "fresh"))
    assert observer.follow() == []


def test_commits_are_shown_when_the_holder_serves_them(observer: Observer, another: Callable[..., LoadedFleet]) -> None:
    observer.fleet.commit({f"{A}/app.yaml": configmap(c="d"), "workspaces/root/d/workspace.yaml": ""})
    assert observer.follow() == [], "pushed, and not yet recorded"
    observer.fleet.publish()
    assert set(observer.follow()) >= {"root:a", "root:d"}
    assert same(observer.other, recovered(observer, another, "fresh"))


def test_who_may_enter_is_shown_as_it_is_served(observer: Observer, another: Callable[..., LoadedFleet]) -> None:
    said = "metadata: {annotations: {authorization.kcp.io/required-groups: 'devs'}}\n"
    opened = "spec: {rootAccess: Authenticated}\n"
    for number, (groups, access) in enumerate(((said, opened), (said, ""), ("", ""))):
        workspace = f"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n{groups}"
        observer.fleet.commit({f"{A}/workspace.yaml": workspace, "treeplane.yaml": TREEPLANE_YAML + access})
        observer.fleet.publish()
        assert {"root:a", "root"} >= set(observer.follow()) >= ({"root:a"} if number != 1 else {"root"})
        cluster = observer.other.record("root:a").cluster
        assert requirements(observer.other.store, cluster) == (["devs"] if groups else [])
        assert same(observer.other, recovered(observer, another, f"fresh{number}"))


def test_who_is_bound_follows_its_provider(observer: Observer, another: Callable[..., LoadedFleet]) -> None:
    observer.fleet.commit({f"{A}/export.yaml": EXPORT % ("v2", "v2")})
    observer.fleet.publish()
    assert {"root:a", "root:b"} <= set(observer.follow())
    assert same(observer.other, recovered(observer, another, "fresh"))


def test_what_waits_to_go_is_shown_until_it_is_allowed(observer: Observer, another: Callable[..., LoadedFleet]) -> None:
    observer.fleet.commit({f"{A}/below/workspace.yaml": "", f"{A}/below/app.yaml": configmap()})
    observer.fleet.commit({A: None})
    observer.fleet.publish()
    observer.follow()
    assert set(observer.other.held()) == {"root:a", "root:a:below"}
    assert same(observer.other, recovered(observer, another, "fresh"))
    observer.fleet.commit({f"{B}/app.yaml": configmap(n="1")})
    observer.fleet.publish()
    assert observer.follow() == ["root:b"]
    observer.fleet.allow()
    observer.fleet.publish()
    observer.follow()
    assert observer.other.paths() == {"root", "root:b", "root:c"}
    assert same(observer.other, recovered(observer, another, "later"))


STEPS: dict[str, Callable[[int], dict[str, str | None]]] = {
    "change": lambda n: {f"{A}/app.yaml": configmap(n=str(n))},
    "rename": lambda n: {f"{A}/app.yaml": None, f"{A}/app{n % 2}.yaml": configmap()},
    "hold": lambda n: {f"{B}/bad.yaml": f"kind: [{n}", f"{B}/g.yaml": GADGET % n},
    "mend": lambda n: {f"{B}/bad.yaml": None},
    "provide": lambda n: {f"{A}/export.yaml": EXPORT % (f"v{n % 3}", f"v{n % 3}")},
    "withdraw": lambda n: {f"{A}/export.yaml": None},
    "bind": lambda n: {"workspaces/root/e/workspace.yaml": "", "workspaces/root/e/b.yaml": BINDING},
    "remove": lambda n: {"workspaces/root/e": None},
    "take away": lambda n: {A: None},
    "put back": lambda n: {
        f"{A}/workspace.yaml": "",
        f"{A}/app.yaml": configmap(),
        f"{A}/export.yaml": EXPORT % ("v1", "v1"),
    },
    "take the consumer": lambda n: {B: None},
    "bring it back": lambda n: {f"{B}/workspace.yaml": "", f"{B}/app.yaml": configmap(), f"{B}/binding.yaml": BINDING},
    "never good": lambda n: {"workspaces/root/f/workspace.yaml": "", "workspaces/root/f/x.yaml": f"kind: [{n}"},
    "move": lambda n: {C: None, f"workspaces/root/{n % 2}/c/workspace.yaml": LAB},
    "retype": lambda n: {"workspaces/root/type.yaml": TYPE.replace("spec:", f"spec:\n  # {n}\n ")},
    "circle": lambda n: {"workspaces/root/type.yaml": TYPE.replace("kube-compat", "lab")},
    "of the type": lambda n: {f"workspaces/root/g{n % 2}/workspace.yaml": LAB},
    "nothing": lambda n: {"README.md": str(n)},
}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from([*STEPS, "status", "finalizer", "allow"]), st.booleans()), min_size=1, max_size=9
    )
)
@example([("take away", False), ("take the consumer", False), ("allow", False), ("status", False)])
@example([("finalizer", True), ("take the consumer", True), ("allow", True)])
def test_following_gives_what_a_recovery_gives(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, bool]]
) -> None:
    folder = tmp_path_factory.mktemp("shown")
    fleets: list[LoadedFleet] = []

    def another(fleet: LoadedFleet, name: str, *, keys: Path | None = None) -> LoadedFleet:
        fleets.append(LoadedFleet(folder / name, repo=fleet.repo, keys=keys))
        return fleets[-1]

    fleets.append(LoadedFleet(folder / "holder"))
    [holder] = fleets
    try:
        holder.begin(SHOP)
        holder.publish()
        observer = Observer(holder, another(holder, "observer", keys=holder.keys))
        observer.begin()
        for number, (step, follows) in enumerate(steps):
            if step == "allow":
                if "Allow-Delete" in str(holder.held()):
                    holder.allow()
            elif step in STEPS:
                holder.commit(STEPS[step](number))
            else:
                touch(holder, step, number)
            holder.publish()
            if follows:
                observer.follow()
        observer.follow()
        assert same(observer.other, recovered(observer, another, "fresh"))
    finally:
        for fleet in fleets:
            fleet.close()


def touch(holder: LoadedFleet, step: str, number: int) -> None:
    """What controllers and clients do to an object of git's."""
    there = tree.workspace_at(holder.store, "root:b")  # an allowed deletion may have taken it
    found = holder.find("root:b", "gadgets.example.io", "g") if there is not None and there.served else None
    if found is None and tree.workspace_at(holder.store, "root:a") is None:
        return
    key = gadget(holder) if found is not None else holder.key("root:a", "configmaps", "app")
    if holder.store.get(key) is None:
        return
    if step == "status":
        holder.update(key, lambda obj: obj.update(status={"seen": number}))
    else:
        holder.update(key, lambda obj: obj["metadata"].update(finalizers=[f"example.io/{number}"]))
