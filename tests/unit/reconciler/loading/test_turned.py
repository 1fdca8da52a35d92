"""Computed conditions say since when they are so: since their object came, or since the commit that had them turn, also
on a server that recovers them."""

from __future__ import annotations

import pytest
from support.fleetrepo import BEGIN
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers, assert_same, recover
from support.settling import Settling, keep
from support.widgets import binding, crd, export, schema, widget

from apiserver.model import clock
from apiserver.model.storagenames import BINDINGS, CRDS, LOGICAL_CLUSTERS
from apiserver.registry import tree

Files = dict[str, str | None]

PROVIDER: Files = {f"{A}/schema.json": schema(), f"{A}/export.json": export()}
CONSUMER: Files = {f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(size=1)}
BROKEN: Files = {f"{A}/bad.yaml": "kind: ["}
MENDED: Files = {f"{A}/bad.yaml": None}


def time(number: int) -> str:
    """Of the commit with this number: the first one has 0."""
    return clock.rfc3339(BEGIN + 60 * number)


def times(fleet: LoadedFleet, path: str, resource: str, name: str) -> dict[str, str]:
    """Since when the conditions of an object are so."""
    found = fleet.get(path, resource, name, "")["status"]["conditions"]
    return {each["type"]: each["lastTransitionTime"] for each in found}


def workspace(fleet: LoadedFleet, path: str) -> tuple[str, str]:
    """Since when the newest commit is served, or is not, and since when the workspace is initialized; both objects that
    stand for it say the same."""
    above, _, name = path.rpartition(":")
    found = times(fleet, above, "workspaces.tenancy.kcp.io", name)
    if fleet.record(path).served:
        assert times(fleet, path, LOGICAL_CLUSTERS, "cluster") == found
    return found["CommitApplied"], found["WorkspaceInitialized"]


def bound(fleet: LoadedFleet) -> dict[str, str]:
    return times(fleet, "root:b", BINDINGS, "widgets")


def summary(fleet: LoadedFleet, path: str) -> dict[str, object]:
    return {name: said for name, said in tree.summary(fleet.store, path).items() if name != "step"}


def test_nothing_is_kept_of_a_workspace_in_which_nothing_turned(fleet: LoadedFleet) -> None:
    fleet.commit({**PROVIDER, **CONSUMER})
    fleet.commit({f"{B}/w.json": widget(size=2)})
    assert bound(fleet) == dict.fromkeys(bound(fleet), time(1))
    assert {name for path in fleet.paths() for name in summary(fleet, path)} <= {
        "origin",
        "commit",
        "identities",
        "type",
    }
    for path in fleet.paths():
        assert "step" not in tree.summary(fleet.store, path)


def test_a_workspace_is_held_and_mended_since_those_commits(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit(BROKEN)
    assert workspace(fleet, "root:a") == (time(1), time(0))
    assert_recovers(fleet, another, "held")
    fleet.commit({f"{B}/app.yaml": configmap(a="c")})
    fleet.commit(MENDED)
    assert workspace(fleet, "root:a") == (time(3), time(0))
    assert workspace(assert_recovers(fleet, another, "mended"), "root:a") == (time(3), time(0))
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    assert workspace(fleet, "root:a") == (time(3), time(0))
    fleet.commit(BROKEN)
    assert workspace(fleet, "root:a") == (time(5), time(0))
    new = assert_recovers(fleet, another, "held again")
    fleet.commit(MENDED)
    new.load()
    assert_same(new, fleet)
    assert workspace(assert_recovers(fleet, another, "mended again"), "root:a") == (time(6), time(0))
    assert workspace(fleet, "root:b") == (time(0), time(0))


def test_one_that_came_with_nothing_good_is_initialized_since_it_was(fleet: LoadedFleet, another: Another) -> None:
    place = "workspaces/root/new"
    fleet.commit({f"{place}/workspace.yaml": "", f"{place}/bad.yaml": "kind: ["})
    assert workspace(fleet, "root:new") == (time(1), time(1))
    new = assert_recovers(fleet, another, "held")
    fleet.commit({f"{place}/bad.yaml": None})
    assert workspace(fleet, "root:new") == (time(2), time(2))
    new.load()
    assert_same(new, fleet)
    fleet.commit({f"{place}/app.yaml": configmap()})
    assert_recovers(fleet, another, "good")
    assert workspace(fleet, "root:new") == (time(2), time(2))


def test_a_providers_commit_has_a_binding_turn(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({**PROVIDER, **CONSUMER})
    fleet.delete({f"{A}/export.json": None})
    assert bound(fleet)["APIExportValid"] == bound(fleet)["BindingUpToDate"] == time(3)
    assert bound(fleet)["Ready"] == bound(fleet)["InitialBindingCompleted"] == time(1)
    new = assert_recovers(fleet, another, "gone")
    fleet.commit({f"{B}/w.json": widget(size=2)})
    fleet.commit({f"{A}/export.json": export()})
    assert bound(fleet)["APIExportValid"] == time(5)
    assert summary(fleet, "root:b")["turned"] == {
        "APIBinding/widgets": {"APIExportValid": time(5), "BindingUpToDate": time(5)}
    }
    new.load()
    assert_same(new, fleet)
    assert_recovers(fleet, another, "back")


def test_a_binding_is_bound_since_there_is_an_export(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{B}/binding.json": binding("root:a")})
    assert set(bound(fleet).values()) == {time(1)}
    fleet.commit(PROVIDER)
    after = bound(fleet)
    assert {kind for kind, at in after.items() if at == time(2)} == {
        "APIExportValid", "BindingUpToDate", "InitialBindingCompleted", "Ready",
    }  # fmt: skip
    assert bound(assert_recovers(fleet, another)) == after


def test_one_that_is_bound_anew_begins_anew(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{B}/binding.json": binding("root:a")})
    fleet.commit(PROVIDER)
    fleet.commit({f"{B}/binding.json": None})
    assert "turned" not in summary(fleet, "root:b")
    fleet.commit({f"{B}/binding.json": binding("root:a")})
    assert set(bound(fleet).values()) == {time(4)}
    assert_recovers(fleet, another)


def test_what_a_provider_does_meanwhile_reaches_who_is_held_when_that_is_over(
    fleet: LoadedFleet, another: Another
) -> None:
    fleet.commit({**PROVIDER, **CONSUMER})
    fleet.commit({f"{B}/bad.yaml": "kind: ["})
    fleet.delete({f"{A}/export.json": None})
    assert set(bound(fleet).values()) == {time(1)}
    new = assert_recovers(fleet, another, "held")
    fleet.commit({f"{B}/bad.yaml": None})
    assert bound(fleet)["APIExportValid"] == time(5)
    new.load()
    assert_same(new, fleet)
    assert_recovers(fleet, another, "mended")


def test_a_consumer_is_mended_by_its_provider(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({**PROVIDER, f"{B}/binding.json": binding("root:a"), f"{B}/w.json": widget(colour="red")})
    assert set(fleet.held()) == {"root:b"}
    fleet.commit(
        {f"{A}/schema2.json": schema("v2", "colour", "string"), f"{A}/export.json": export("v2", allow="v1->v2")}
    )
    assert fleet.held() == {}
    assert workspace(fleet, "root:b") == (time(2), time(0))
    assert_recovers(fleet, another)


def test_a_definition_is_served_since_its_names_are_free(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({**PROVIDER, f"{B}/binding.json": binding("root:a")})
    fleet.commit({f"{B}/crd.json": crd()})
    assert set(times(fleet, "root:b", CRDS, "widgets.example.io").values()) == {time(2)}
    assert_recovers(fleet, another, "waiting")
    fleet.commit({f"{B}/binding.json": None})
    freed = time(3)
    found = times(fleet, "root:b", CRDS, "widgets.example.io")
    assert found == {"NamesAccepted": freed, "Established": freed}
    assert_recovers(fleet, another, "served")


def test_what_waited_for_runtime_turns_at_the_real_time(fleet: LoadedFleet, another: Another) -> None:
    """The names are free once a finalizer is gone, which no commit tells."""
    settle = Settling()
    fleet.commit({f"{B}/crd.json": crd(), f"{B}/w.json": widget(size=1), **PROVIDER})
    keep(fleet, "root:b", "w", "widgets.example.io")
    fleet.delete({f"{B}/crd.json": None, f"{B}/w.json": None})
    fleet.commit({f"{B}/binding.json": binding("root:a")})
    came = time(4)
    assert set(bound(fleet).values()) == {came}
    before = clock.now()
    settle.let_go(fleet, "root:b", "w", "widgets.example.io")
    after = bound(fleet)
    assert after["APIExportValid"] == came
    for kind in ("BindingUpToDate", "InitialBindingCompleted", "Ready"):
        assert before <= after[kind] <= clock.now()
    assert bound(assert_recovers(fleet, another)) == after


def test_a_type_says_what_is_not_supported_since_it_asks_for_it(fleet: LoadedFleet, another: Another) -> None:
    kind = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\nmetadata: {name: lab}\n"
    fleet.commit({"workspaces/root/type.yaml": kind})
    fleet.commit({"workspaces/root/type.yaml": f"{kind}spec: {{authenticationConfigurations: [{{name: x}}]}}\n"})
    found = times(fleet, "root", "workspacetypes.tenancy.kcp.io", "lab")
    assert found == {"Ready": time(1), "VirtualWorkspaceURLsReady": time(1), "Supported": time(2)}
    assert_recovers(fleet, another)
    fleet.commit({"workspaces/root/type.yaml": kind})
    assert "turned" not in summary(fleet, "root")
    assert_recovers(fleet, another, "unsaid")


@pytest.mark.parametrize("lagging", [False, True])
def test_a_head_that_goes_back_has_things_turn_at_what_it_goes_back_to(
    fleet: LoadedFleet, another: Another, lagging: bool
) -> None:
    fleet.commit({**PROVIDER, **CONSUMER})
    fleet.delete({f"{A}/export.json": None})
    fleet.commit(BROKEN)
    if lagging:
        fleet.publish()
    fleet.repo.reset(fleet.repo.commits[1])
    fleet.load()
    assert bound(fleet)["APIExportValid"] == time(1)
    assert workspace(fleet, "root:a") == (time(1), time(0))
    if lagging:
        new = recover(fleet, another)
        assert_same(new, fleet)
    else:
        assert_recovers(fleet, another)


def test_a_recovery_from_an_earlier_status_commit_finds_the_same(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({**PROVIDER, **CONSUMER})
    fleet.publish()
    for number in range(3):
        fleet.delete({f"{A}/export.json": None, f"{B}/app.yaml": configmap(n=str(number))})
        fleet.commit({f"{B}/bad.yaml": f"kind: [{number}"})
        fleet.commit({f"{A}/export.json": export()})
        fleet.commit({f"{B}/bad.yaml": None})
    new = recover(fleet, another)
    assert_same(new, fleet)
    assert workspace(new, "root:b")[0] == time(16)


def test_what_a_secret_of_the_server_has_held_is_mended_at_the_real_time(fleet: LoadedFleet, another: Another) -> None:
    """No commit tells of keys/secrets/."""
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: target}\n"
    fleet.commit({f"{A}/secret.yaml": secret})
    fleet.keep_secret("root:a", secret)
    assert set(fleet.held()) == {"root:a"}
    before = clock.now()
    fleet.keep_secret("root:a", None)
    assert before <= workspace(fleet, "root:a")[0] <= clock.now()
    assert_recovers(fleet, another, share=True)
