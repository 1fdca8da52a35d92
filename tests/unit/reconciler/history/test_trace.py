"""A copy on a sync target, back to the file, the commit and the Placement."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click import ClickException
from click.testing import CliRunner
from support.loadedfleet import A, B, LoadedFleet
from support.syncedfleet import INFRA, SHOP, SyncedFleet, config

from reconciler.__main__ import main
from reconciler.commands.history import HistoryAsked, trace, trace_copies
from reconciler.history.result import ObjectTrace
from reconciler.plan.pushedby import PUSH, PushedBy
from reconciler.review.fields import ABSENT, HIDDEN
from reconciler.statusbranch import pushers

WEST = "root:infra:west"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: web}\nstringData: {password: hunter2}\n"
Object = dict[str, Any]


@pytest.fixture(scope="module")
def synced(tmp_path_factory: pytest.TempPathFactory, eventually: Any) -> Iterator[SyncedFleet]:
    """What root:shop has runs on west, as the status branch says; alice pushed the second commit. No server runs."""
    fleet = SyncedFleet(tmp_path_factory.mktemp("trace") / "fleet")
    fleet.begin(**{f"{SHOP}/secret.yaml": SECRET})
    west = fleet.clusters["west"]
    eventually(lambda: west.names("deployments") and west.names("secrets") and "settings" in west.names("configmaps"))
    fleet.commit(settings="# a remark\n" + config("settings", a="c"))
    pushers.note(fleet.fleet.store, {fleet.fleet.repo.head: PushedBy("alice", PUSH)})
    eventually(lambda: west.find("configmaps", "settings")["data"] == {"a": "c"})
    eventually(lambda: fleet.condition(placement(fleet), "Synced").get("status") == "True")
    eventually(lambda: ((fleet.deployment() or {}).get("status") or {}).get("observedGeneration"))
    fleet.stop()
    fleet.fleet.publish()
    yield fleet
    fleet.close()


def placement(fleet: SyncedFleet) -> Object:
    return fleet.fleet.get("root:shop", "placements.scheduling.kcp.io", "prod", "")


def asked(fleet: SyncedFleet, *words: str, workspace: str = "root:shop", namespace: str = "") -> HistoryAsked:
    return HistoryAsked(fleet.fleet.repo.path, words, namespace, workspace)


def given(fleet: SyncedFleet, *copies: Object, workspace: str = "") -> ObjectTrace:
    text = "---\n".join(json.dumps(each) + "\n" for each in copies)
    [found] = trace_copies(asked(fleet, workspace=workspace), text.encode())
    return found


def copy(fleet: SyncedFleet, resource: str, name: str) -> Object:
    return {**fleet.clusters["west"].find(resource, name)}


def kinded(value: Object, kind: str, version: str = "v1") -> Object:
    return {"apiVersion": version, "kind": kind, **value}


def test_an_object_that_is_named(synced: SyncedFleet) -> None:
    repo = synced.fleet.repo
    first, second = repo.commits[0], repo.head
    found = trace(asked(synced, "cm/settings"), "west")[0]
    assert (found.file, found.line, found.commit.id, found.served) == (f"{SHOP}/settings.yaml", 2, second, second)
    assert found.commit.pusher == PushedBy("alice", PUSH)
    assert (found.target, str(found.object)) == (WEST, "ConfigMap web/settings")
    [by] = found.placements
    assert by.name == "prod"
    assert by.rule.startswith(f"runs on sync target {WEST}, which Location west of root:infra holds")
    assert by.since
    assert (by.synced, found.differs) == ("True", None)
    assert found.recorded == synced.fleet.recorded().commit.id  # type: ignore[union-attr]
    web = trace(asked(synced, "deploy/web"), WEST)[0]
    assert (web.commit.id, web.served, web.observed) == (first, second, True)


def test_a_copy_says_what_its_file_does_or_what_it_does_not(synced: SyncedFleet) -> None:
    deployment = kinded(copy(synced, "deployments", "web"), "Deployment", "apps/v1")
    found = given(synced, deployment)
    assert (found.target, found.file, found.differs) == (WEST, f"{SHOP}/web.yaml", ())
    template = {**deployment["spec"]["template"], "spec": {"containers": [{"name": "web", "image": "web:2"}]}}
    changed = {**deployment, "spec": {**deployment["spec"], "template": template, "paused": True}}
    del changed["spec"]["replicas"]
    found = given(synced, changed)
    assert found.differs is not None
    assert {tuple(each) for each in found.differs} == {
        ("spec.template.spec.containers[name=web].image", "web:1", "web:2"),
        ("spec.replicas", 2, ABSENT),
    }
    [secret] = (
        given(synced, kinded({**copy(synced, "secrets", "s"), "data": {"password": "eA=="}}, "Secret")).differs or ()
    )
    assert tuple(secret) == ("data.password", HIDDEN, HIDDEN)
    assert given(synced, kinded(copy(synced, "secrets", "s"), "Secret")).differs == ()
    found = given(synced, {**deployment, "apiVersion": "apps/v2"})
    assert found.differs is None
    assert "cannot be compared" in found.notes[-1]


def test_what_stands_beside_it_tells_whose_it_is(synced: SyncedFleet) -> None:
    settings = kinded(copy(synced, "configmaps", "settings"), "ConfigMap")
    parent = kinded(copy(synced, "configmaps", "treeplane-inventory"), "ConfigMap")
    found = given(synced, settings, parent)
    assert (found.object.workspace, found.object.namespace) == ("root:shop", "web")
    assert any("applied from" in note for note in found.notes)


def test_an_object_as_our_own_api_shows_it(synced: SyncedFleet) -> None:
    upstream = synced.fleet.get("root:shop", "configmaps", "settings", "web")
    found = given(synced, upstream)
    assert (found.file, found.target, found.differs) == (f"{SHOP}/settings.yaml", "", ())
    lie = {
        **upstream,
        "metadata": {**upstream["metadata"], "annotations": {"treeplane.dev/source-path": f"{INFRA}/x.yaml"}},
    }
    with pytest.raises(ClickException, match="is not from here"):
        given(synced, lie)


def test_what_is_not_from_here_says_so(synced: SyncedFleet) -> None:
    settings = kinded(copy(synced, "configmaps", "settings"), "ConfigMap")
    metadata = settings["metadata"]
    bare = {**settings, "metadata": {"name": "settings", "namespace": "web"}}
    elsewhere = {**settings, "metadata": {**metadata, "namespace": "kcp-other"}}
    unknown = {**settings, "metadata": {**metadata, "name": "nobodys"}}
    labels = {**metadata["labels"], "internal.workload.kcp.io/cluster": "x" * 38}
    for value, text in (
        (bare, "ConfigMap web/settings is not from here"),
        (elsewhere, "is not from here: it has no label"),
        (unknown, "no file of .* declares it"),
        ({**settings, "metadata": {**metadata, "labels": labels}}, "no workspace has a namespace that is"),
        ({**bare, "metadata": {"name": "a\x1b[2J"}}, r"a\\x1b\[2J is not from here"),
    ):
        with pytest.raises(ClickException, match=text) as found:
            given(synced, value)
        assert found.value.exit_code == 1


def test_nothing_that_is_given_does_harm(synced: SyncedFleet) -> None:
    """Whatever stands where a map, a list or a text belongs."""
    settings = kinded(copy(synced, "configmaps", "settings"), "ConfigMap")
    parent = kinded(copy(synced, "configmaps", "treeplane-inventory"), "ConfigMap")
    for base in (settings, parent, kinded(synced.fleet.get("root:shop", "configmaps", "settings", "web"), "ConfigMap")):
        for part in ("labels", "annotations", "managedFields", "namespace", "name", None):
            for odd in (None, [], ["x"], {}, {"a": {"b": []}}, "x", 1, True):
                metadata = {**base["metadata"], part: odd} if part else base["metadata"]
                value = {**base, "metadata": metadata} if part else {**base, "data": odd}
                with contextlib.suppress(ClickException):
                    trace_copies(asked(synced), json.dumps(value).encode())
    for odd in (None, [], "x", 1):
        with pytest.raises(ClickException, match="no object was given"):
            trace_copies(asked(synced), json.dumps({"kind": "ConfigMap", "metadata": odd}).encode())


def test_what_is_asked_badly(synced: SyncedFleet) -> None:
    for words, target, text, code in (
        (("cm/setting",), "west", "near it: settings", 1),
        (("cm/settings",), "east", f"it runs on {WEST}", 1),
        (("cm/settings", "deploy/web"), "west", "are both given", 2),
        (("cm/settings", "main"), "west", "a trace is of what is served", 2),
    ):
        with pytest.raises(ClickException, match=text) as found:
            trace(asked(synced, *words), target)
        assert found.value.exit_code == code
    with pytest.raises(ClickException, match="near it: root:shop"):
        trace(asked(synced, "cm/settings", workspace="root:shopp"), "west")
    for text in (b"", b"a: [", b"[]", b"\xff", b"kind: List\nitems: []\n"):
        with pytest.raises(ClickException) as found:
            trace_copies(asked(synced), text)
        assert found.value.exit_code == 2


def test_exit_codes_and_forms(synced: SyncedFleet) -> None:
    place = ["trace", "-C", str(synced.fleet.repo.path)]
    settings = kinded(copy(synced, "configmaps", "settings"), "ConfigMap")
    for value, code in ((settings, 0), ({**settings, "data": {"a": "z"}}, 1)):
        for form in ("text", "json", "yaml"):
            done = CliRunner().invoke(main, [*place, "-f", "-", "-o", form], input=json.dumps(value))
            assert done.exit_code == code, done.output
            assert f"{SHOP}/settings.yaml" in done.output
    for words in ([], ["cm/settings"], ["cm/settings", "--target", "west", "-f", "-"]):
        assert CliRunner().invoke(main, [*place, *words]).exit_code == 2


def test_a_held_workspace_is_told_as_it_is_served(tmp_path: Path) -> None:
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.begin()
    served = fleet.repo.head
    fleet.commit({f"{A}/app.yaml": "kind: ConfigMap\n", f"{B}/app.yaml": config("app", "default", a="z")})
    fleet.publish()
    upstream = fleet.get("root:a", "configmaps", "app")
    [found] = trace_copies(HistoryAsked(fleet.repo.path, ()), json.dumps(upstream).encode())
    assert (found.served, found.commit.id, found.differs) == (served, served, ())
    fleet.close()
