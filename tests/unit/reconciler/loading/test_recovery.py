"""A lost store: the repository and its status branch give the same world again."""

from __future__ import annotations

import json

import pytest
from support import shipped
from support.loadedfleet import A, B, LoadedFleet, Object, configmap
from support.recoveries import Another, assert_recovers, assert_same, recover

from apiserver.model.commits import NONE, own
from apiserver.storage.protocol import Delete
from reconciler.loading.case import Case, Verdict
from reconciler.loading.judge import Judge
from reconciler.repository.difference import walk
from reconciler.statusbranch.recorded import RecordedFleet

C, D, E = "workspaces/root/c", "workspaces/root/d", "workspaces/root/e"
WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {app: foo}}\n"
PLACEMENT = """\
apiVersion: scheduling.kcp.dev/v1alpha1
kind: Placement
metadata: {name: aws}
spec:
  locationSelectors: [{matchLabels: {cloud: aws}}]
  namespaceSelector: {matchLabels: {app: foo}}
  locationWorkspace: root:a
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Cluster
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""
EXPORT = """\
apiVersion: apis.kcp.io/v1alpha1
kind: APIExport
metadata: {name: gadgets}
spec: {latestResourceSchemas: [v1.gadgets.example.io]}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIResourceSchema
metadata: {name: v1.gadgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}
  versions:
  - {name: v1, served: true, storage: true, schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


def binding(path: str, name: str) -> str:
    return (
        f"apiVersion: apis.kcp.io/v1alpha1\nkind: APIBinding\nmetadata: {{name: {name}}}\n"
        f"spec: {{reference: {{export: {{path: {path!r}, name: {name}}}}}}}\n"
    )


def deployment(replicas: int = 1) -> str:
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {
                    "metadata": {"labels": {"app": "web"}},
                    "spec": {"containers": [{"name": "web", "image": "web:1"}]},
                },
            },
        }
    )


def gadget(size: int | str) -> str:
    return f"apiVersion: example.io/v1\nkind: Gadget\nmetadata: {{name: g}}\nspec: {{size: {size}}}\n"


def widget(size: int) -> str:
    return f"apiVersion: example.io/v1\nkind: Widget\nmetadata: {{name: w}}\nspec: {{size: {size}}}\n"


SHOP: dict[str, str] = {
    f"{A}/export.yaml": EXPORT,
    f"{A}/crd.yaml": CRD,
    f"{A}/w.yaml": widget(1),
    f"{B}/ns.yaml": NAMESPACE,
    f"{B}/placement.yaml": shipped.binding(shipped.SCHEDULING) + "---\n" + PLACEMENT,
    f"{B}/bindings.yaml": binding("root:compute", "kubernetes") + "---\n" + binding("root:a", "gadgets"),
    f"{B}/web.json": deployment(),
    f"{B}/g.yaml": gadget(1),
}


@pytest.fixture
def shop(empty: LoadedFleet) -> LoadedFleet:
    """A provider, a consumer with Deployments and a Placement, and what controllers said of them."""
    empty.begin(SHOP)
    assert empty.held() == {}
    return empty


def observe(fleet: LoadedFleet) -> None:
    """What controllers and clusters answer."""

    def decide(obj: Object) -> None:
        obj["metadata"]["annotations"]["internal.scheduling.kcp.io/selected"] = "root:a:aws-1"
        ready = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2026-01-05T00:00:00Z"}
        obj["status"] = {"phase": "Bound", "selectedLocation": {"path": "root:a", "locationName": "aws"},
                         "conditions": [ready]}  # fmt: skip

    def run(obj: Object) -> None:
        obj["status"] = {"observedGeneration": obj["metadata"]["generation"], "replicas": 1, "readyReplicas": 1}

    fleet.update(fleet.key("root:b", "placements.scheduling.kcp.io", "aws", ""), decide)
    fleet.update(fleet.key("root:b", "deployments.apps", "web", "shop"), run)
    fleet.update(fleet.key("root:a", "widgets.example.io", "w", ""), lambda obj: obj.update(status={"ready": True}))


# -- one thing at a time


def test_a_fleet_as_it_was_first_loaded(fleet: LoadedFleet, another: Another) -> None:
    assert_recovers(fleet, another)


def test_kinds_bindings_and_identities(shop: LoadedFleet, another: Another) -> None:
    assert_recovers(shop, another)


def test_identities_without_their_keys(shop: LoadedFleet, another: Another) -> None:
    new = assert_recovers(shop, another, identities=False)
    identities = {key.resource.partition(":")[2] for key in new.everything() if ":" in key.resource}
    assert len(identities) == 2
    new.commit({f"{A}/w.yaml": widget(7)})
    assert new.written() == ["~widgets.example.io/root:a//w"]


def test_statuses_and_decisions(shop: LoadedFleet, another: Another) -> None:
    observe(shop)
    new = assert_recovers(shop, another)
    placement = new.get("root:b", "placements.scheduling.kcp.io", "aws", "")
    assert placement["metadata"]["annotations"]["internal.scheduling.kcp.io/selected"] == "root:a:aws-1"
    assert new.get("root:b", "deployments.apps", "web", "shop")["status"]["readyReplicas"] == 1


def test_what_is_said_of_a_namespace(shop: LoadedFleet, another: Another) -> None:
    def scheduled(obj: Object) -> None:
        obj["metadata"]["annotations"]["scheduling.kcp.io/placement"] = ""
        obj["status"]["conditions"] = [{"type": "NamespaceScheduled", "status": "False", "reason": "Unschedulable"}]

    for name in ("shop", "default"):
        shop.update(shop.key("root:b", "namespaces", name, ""), scheduled)
    new = assert_recovers(shop, another)
    found = new.get("root:b", "namespaces", "default", "")["metadata"]["annotations"]
    assert found["scheduling.kcp.io/placement"] == ""


def test_field_owners(shop: LoadedFleet, another: Another) -> None:
    entry = {"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
             "fieldsV1": {"f:spec": {"f:replicas": {}}}, "time": "2026-01-05T00:00:00Z"}  # fmt: skip
    key = shop.key("root:b", "deployments.apps", "web", "shop")
    shop.update(key, lambda obj: obj["metadata"].update(managedFields=[entry]))
    assert_recovers(shop, another)


def test_finalizers(shop: LoadedFleet, another: Another) -> None:
    key = shop.key("root:a", "widgets.example.io", "w", "")
    shop.update(key, lambda obj: obj["metadata"].update(finalizers=["example.io/cleanup"]))
    assert_recovers(shop, another)


def test_a_deletion_under_way(shop: LoadedFleet, another: Another) -> None:
    """What a commit took away waits for whoever has to clean up behind it, also on another server."""
    for path, resource, name in (("root:a", "widgets.example.io", "w"), ("root:b", "gadgets.example.io", "g")):
        key = shop.key(path, resource, name)
        shop.update(key, lambda obj: obj["metadata"].update(finalizers=["example.io/cleanup"]))
    shop.commit({f"{A}/w.yaml": None, f"{B}/g.yaml": None})
    new = assert_recovers(shop, another)
    waiting = new.get("root:b", "gadgets.example.io", "g")
    assert waiting["metadata"]["deletionTimestamp"]
    assert waiting["metadata"]["finalizers"] == ["example.io/cleanup"]
    assert waiting["spec"] == {"size": 1}
    new.store.write(Delete(new.key("root:b", "gadgets.example.io", "g"))).result()
    new.publish()
    third = recover(new, another, "third")
    assert third.find("root:b", "gadgets.example.io", "g") is None
    assert third.find("root:a", "widgets.example.io", "w") is not None


def test_what_git_declares_again_while_it_waits(shop: LoadedFleet, another: Another) -> None:
    key = shop.key("root:a", "widgets.example.io", "w")
    shop.update(key, lambda obj: obj["metadata"].update(finalizers=["example.io/cleanup"]))
    shop.commit({f"{A}/w.yaml": None})
    shop.publish()
    shop.commit({f"{A}/w.yaml": widget(5)})
    new = assert_recovers(shop, another)
    assert new.get("root:a", "widgets.example.io", "w")["metadata"]["deletionTimestamp"]


def test_commits_and_generations(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{B}/web.json": deployment(2)})
    shop.commit({f"{B}/web.json": deployment(3), f"{A}/w.yaml": widget(2)})
    shop.commit({"README.md": "elsewhere"})
    new = assert_recovers(shop, another)
    assert new.get("root:b", "deployments.apps", "web", "shop")["metadata"]["generation"] == 3


def test_deleted_and_recreated(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{A}/app.yaml": None, f"{B}/g.yaml": None})
    shop.commit({f"{A}/app.yaml": configmap(), f"{B}/g.yaml": gadget(2)})
    assert_recovers(shop, another)


def test_workspaces_that_came_and_went(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{C}/workspace.yaml": WORKSPACE, f"{C}/app.yaml": configmap(), f"{D}/workspace.yaml": ""})
    shop.publish()
    shop.commit({C: None})
    shop.commit({f"{C}/workspace.yaml": WORKSPACE + "metadata: {labels: {a: b}}\n", f"{C}/app.yaml": configmap()})
    shop.commit({f"{C}/workspace.yaml": WORKSPACE + "metadata: {labels: {a: c}}\n"})
    assert_recovers(shop, another)


def test_a_crd_that_came_later(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{C}/workspace.yaml": ""})
    shop.commit({f"{C}/crd.yaml": CRD, f"{C}/w.yaml": widget(1)})
    shop.commit({f"{C}/w.yaml": widget(2)})
    assert_recovers(shop, another)


def test_an_export_that_came_after_its_binding(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{B}/binding.yaml": binding("root:a", "gadgets")})
    fleet.commit({f"{A}/export.yaml": EXPORT})
    fleet.commit({f"{B}/g.yaml": gadget(1)})
    assert_recovers(fleet, another)


def test_a_binding_to_an_export_of_the_workspace_itself(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{A}/binding.yaml": binding("root:a", "gadgets"), f"{A}/g.yaml": gadget(1)})
    shop.commit({f"{A}/g.yaml": gadget(2)})
    assert_recovers(shop, another)


def test_a_binding_that_waits(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{B}/binding.yaml": binding("root:a", "gadgets")})
    assert_recovers(fleet, another)


def test_a_held_workspace(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{B}/g.yaml": gadget(2)})
    observe(shop)
    shop.commit({f"{B}/g.yaml": gadget(3), f"{B}/bad.yaml": "kind: ["})
    shop.commit({f"{A}/w.yaml": widget(3)})
    new = assert_recovers(shop, another)
    assert set(new.held()) == {"root:b"}
    assert new.get("root:b", "gadgets.example.io", "g")["spec"] == {"size": 2}
    # What heals it is followed from where it was.
    new.commit({f"{B}/bad.yaml": None})
    assert new.held() == {}
    assert new.get("root:b", "gadgets.example.io", "g")["spec"] == {"size": 3}


def test_a_workspace_that_was_held_and_healed(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{B}/bad.yaml": "kind: ["})
    shop.commit({f"{B}/bad.yaml": None})
    assert_recovers(shop, another)


def test_a_workspace_that_was_never_good(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{C}/workspace.yaml": "", f"{C}/bad.yaml": "kind: ["})
    shop.commit({f"{A}/w.yaml": widget(3)})
    new = assert_recovers(shop, another)
    assert not new.record("root:c").served
    shop.commit({f"{C}/bad.yaml": None})
    new.load()
    shop_again = new.record("root:c")
    assert (shop_again.cluster, shop_again.origin) == (shop.record("root:c").cluster, shop.record("root:c").origin)
    assert new.everything() == shop.everything()


def test_a_workspace_that_stands_twice(shop: LoadedFleet, another: Another) -> None:
    """It is served as it was, wherever of the two places that was."""
    shop.commit({"workspaces/root/z/c/workspace.yaml": "", "workspaces/root/z/c/app.yaml": configmap()})
    shop.commit({f"{C}/workspace.yaml": "", f"{C}/app.yaml": configmap("other")})
    assert set(shop.held()) == {"root:c"}
    new = assert_recovers(shop, another)
    assert new.find("root:c", "configmaps", "app") is not None


def test_errors_that_changed_while_held(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{B}/bad.yaml": "kind: [", f"{C}/workspace.yaml": "", f"{C}/bad.yaml": "kind: ["})
    shop.publish()
    other = configmap("x", namespace="nowhere")
    shop.commit({f"{B}/bad.yaml": other, f"{C}/bad.yaml": other})
    new = assert_recovers(shop, another)
    assert all("nowhere" in errors[0] for errors in new.held().values())


def test_a_child_of_a_held_workspace(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{B}/bad.yaml": "kind: ["})
    shop.commit({f"{B}/child/workspace.yaml": "", f"{B}/child/app.yaml": configmap()})
    assert set(shop.held()) == {"root:b"}
    assert_recovers(shop, another)


def test_a_held_root(shop: LoadedFleet, another: Another) -> None:
    shop.commit({"workspaces/root/bad.yaml": "kind: ["})
    shop.commit({f"{C}/workspace.yaml": "", f"{C}/app.yaml": configmap()})
    assert_recovers(shop, another)


def test_a_consumer_that_keeps_what_its_provider_offered(shop: LoadedFleet, another: Another) -> None:
    newer = EXPORT.replace("v1.gadgets", "v2.gadgets").replace(
        "{type: object, x-kubernetes-preserve-unknown-fields: true}",
        "{type: object, properties: {spec: {type: object, properties: {size: {type: string}}}}}",
    )
    allowed = "annotations: {treeplane.dev/allow-incompatible-schema: v1.gadgets.example.io->v2.gadgets.example.io}, "
    export = EXPORT.replace("[v1.", "[v2.").replace("metadata: {name: gadgets", f"metadata: {{{allowed}name: gadgets")
    shop.commit({f"{A}/new.yaml": newer.partition("---\n")[2], f"{A}/export.yaml": export})
    assert shop.held() == {}
    new = assert_recovers(shop, another)
    for size, held in ((2, set()), ("'big'", set()), (3, {"root:b"})):
        shop.commit({f"{B}/g.yaml": gadget(size)})
        new.load()
        assert set(shop.held()) == set(new.held()) == held
        assert_same(new, shop)


def test_a_consumer_whose_export_went(shop: LoadedFleet, another: Another) -> None:
    shop.delete({f"{A}/export.yaml": EXPORT.partition("---\n")[2]})
    assert shop.held() == {}
    new = assert_recovers(shop, another)
    new.commit({f"{A}/export.yaml": EXPORT})
    assert new.held() == {}
    bound = new.get("root:b", "apibindings.apis.kcp.io", "gadgets", "")
    assert new.condition(bound, "APIExportValid")["status"] == "True"


@pytest.mark.parametrize("change", [{f"{A}/export.yaml": None}, {A: None}], ids=["export and schema", "workspace"])
def test_a_consumer_whose_provider_went(shop: LoadedFleet, another: Another, change: dict[str, str | None]) -> None:
    observe(shop)
    shop.delete(change)
    assert shop.held() == {}
    new = assert_recovers(shop, another)
    assert new.get("root:b", "gadgets.example.io", "g")["spec"] == {"size": 1}


def test_a_workspace_that_was_left_behind(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{A}/workspace.yaml": None, f"{B}/g.yaml": gadget(2)})
    new = assert_recovers(shop, another)
    assert set(new.held()) == {"root:a"}
    new.commit({f"{A}/workspace.yaml": ""})
    assert new.held() == {}


def test_a_moved_workspace(shop: LoadedFleet, another: Another) -> None:
    observe(shop)
    shop.publish()
    files = shop.repo.files(shop.repo.head)
    moved = {path.replace(B, "workspaces/root/0b/b"): data for path, data in files.items() if path.startswith(B)}
    shop.commit({B: None, **moved})
    assert shop.held() == {}
    assert_recovers(shop, another)


def test_an_adopted_object(shop: LoadedFleet, another: Another) -> None:
    key = shop.key("root:a", "configmaps", "app")._replace(name="mine")
    metadata = {
        "name": "mine",
        "namespace": "default",
        "uid": "11111111-2222-3333-4444-555555555555",
        "creationTimestamp": "2025-12-31T00:00:00Z",
        "annotations": {"kcp.io/cluster": key.cluster, "treeplane.dev/origin": "runtime"},
    }
    shop.put(key, {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"a": "b"}})
    shop.commit({f"{A}/mine.yaml": configmap("mine")})
    assert_recovers(shop, another)


def test_an_object_with_labels_and_annotations_of_its_own(shop: LoadedFleet, another: Another) -> None:
    decorated = configmap().replace("{name: app}", "{annotations: {note: x}, labels: {b: c, a: b}, name: app}")
    shop.commit({f"{A}/app.yaml": decorated})
    shop.commit({f"{A}/app.yaml": decorated.replace("note: x", "note: z")})
    assert_recovers(shop, another)


def test_a_rewritten_branch(shop: LoadedFleet, another: Another) -> None:
    first = shop.repo.head
    shop.commit({f"{A}/more.yaml": configmap("more")})
    shop.publish()
    shop.commit({f"{A}/more.yaml": configmap("more"), f"{B}/g.yaml": gadget(5)}, parent=first)
    assert_recovers(shop, another)


def test_secrets_of_the_keys(shop: LoadedFleet, another: Another) -> None:
    shop.keep_secret("root:a", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {a: b}\n")
    head = shop.publish()
    assert "s.yaml" not in " ".join(shop.repo.files(head))
    new = recover(shop, another)
    assert_same(new, shop)


# -- all of it, and what comes after


def test_a_long_life(empty: LoadedFleet, another: Another) -> None:
    empty.begin()
    first = empty.publish()
    empty.commit(SHOP)
    observe(empty)
    empty.publish()
    empty.commit({f"{B}/web.json": deployment(2), f"{C}/workspace.yaml": "", f"{C}/app.yaml": configmap()})
    observe(empty)
    empty.commit({f"{C}/bad.yaml": "kind: [", f"{A}/app.yaml": None})
    empty.commit({f"{A}/app.yaml": configmap(a="again"), f"{D}/workspace.yaml": "", f"{D}/bad.yaml": "kind: ["})
    last = empty.publish()
    assert first != last
    new = assert_recovers(empty, another)
    # Recovered once more, from what the recovered server wrote.
    new.commit({f"{C}/bad.yaml": None})
    again = new.publish()
    assert again != last
    third = recover(new, another, "third")
    assert_same(third, new)


def test_commits_that_came_while_no_server_ran_are_judged_in_turn(shop: LoadedFleet, another: Another) -> None:
    shop.publish()
    shop.repo.commit({f"{A}/app.yaml": None})
    shop.repo.commit({f"{A}/app.yaml": configmap(), f"{B}/bad.yaml": "kind: ["})
    shop.repo.commit({f"{C}/workspace.yaml": "", f"{C}/app.yaml": configmap()})
    new = recover(shop, another)
    shop.load()
    assert_same(new, shop)
    assert set(new.held()) == {"root:b"}


def test_without_a_status_branch_the_head_is_every_origin(shop: LoadedFleet, another: Another) -> None:
    shop.commit({f"{C}/workspace.yaml": ""})
    new = another(shop, keys=shop.keys)
    assert new.recorded() is None
    new.load(None)
    assert {r.origin for r in new.records()} == {own(shop.repo.head)}


def test_the_log_of_a_recovered_store_begins_after_it(shop: LoadedFleet, another: Another) -> None:
    shop.publish()
    new = recover(shop, another)
    assert [c.key.resource for c in new.store.changes(new.store.oldest())] == []


def test_looking_again_after_a_recovery_writes_nothing(shop: LoadedFleet, another: Another) -> None:
    observe(shop)
    shop.publish()
    new = recover(shop, another)
    new.recheck(new.paths())
    assert new.all_changes() == []


def test_what_was_recorded_of_objects_that_are_gone_is_forgotten(shop: LoadedFleet, another: Another) -> None:
    observe(shop)
    shop.publish()
    shop.repo.commit({f"{B}/web.json": None})
    new = recover(shop, another)
    head = new.writer().flush()
    assert head is not None
    paths = list(RecordedFleet(new.mirror.repository, head).paths())
    assert paths
    assert not any("deployments.apps" in path for path in paths)


def _files(fleet: LoadedFleet, commit: str) -> dict[str, str]:
    """What a status commit holds of root:b."""
    repo = fleet.mirror.repository
    entries = walk(repo, repo.commit(commit).tree)
    return {path: entry.id for path, entry in entries if path.startswith(f"{B}/")}


def test_a_workspace_that_cannot_be_brought_back_is_not_lost(
    shop: LoadedFleet, another: Another, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of the program at a recovery lowers nothing: what the status branch knows stays there, and brings the
    workspace back as it was once the fault is mended."""
    observe(shop)
    shop.commit({f"{B}/web.json": deployment(3)})
    head = shop.publish()
    judge = Judge.judge

    def fails(self: Judge, case: Case) -> Verdict:
        if case.path == "root:b":
            raise ZeroDivisionError
        return judge(self, case)

    with monkeypatch.context() as broken:
        broken.setattr(Judge, "judge", fails)
        new = recover(shop, another)
        assert not new.record("root:b").served
        assert "was served, and cannot be brought back: could not be judged" in new.record("root:b").errors[0]
        new.commit({f"{A}/w.yaml": widget(5)})
        writer = new.writer()
        writer.flush()
        writer._foreign = True  # compares all
        writer.flush()
    recorded = new.mirror.status()
    assert recorded is not None
    assert _files(shop, head) == _files(new, recorded)
    shop.load()
    shop.commit({f"{B}/g.yaml": gadget(4)})
    new.load()
    assert new.held() == {}
    assert new.fleet().lost == NONE
    assert_same(new, shop)
