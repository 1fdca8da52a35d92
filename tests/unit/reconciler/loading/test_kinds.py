"""Kinds follow from content: CRDs of the workspace itself, exports of its providers."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from support.loadedfleet import A, B, LoadedFleet
from support.providing import TEXT, consume, provide, ready
from support.widgets import binding, crd, export, schema, widget

from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import AUTHENTICATED, KCP_ADMIN, Attributes, User


def test_a_crd_and_its_object_may_come_in_one_commit(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/0.json": widget(size=1), f"{A}/1.json": crd()})
    assert fleet.held() == {}
    assert fleet.get("root:a", "widgets.example.io", "w")["spec"] == {"size": 1}
    stored = fleet.get("root:a", "customresourcedefinitions.apiextensions.k8s.io", "widgets.example.io", "")
    assert fleet.condition(stored, "Established")["status"] == "True"


def test_the_same_crd_in_two_versions_in_two_workspaces(fleet: LoadedFleet) -> None:
    fleet.commit(
        {
            f"{A}/crd.json": crd("v1", "size", "integer"),
            f"{A}/w.json": widget("v1", size=1),
            f"{B}/crd.json": crd("v1alpha1", "colour", "string"),
            f"{B}/w.json": widget("v1alpha1", colour="red"),
        }
    )
    assert fleet.held() == {}
    one, other = (fleet.get(path, "widgets.example.io", "w") for path in ("root:a", "root:b"))
    assert (one["apiVersion"], one["spec"]) == ("example.io/v1", {"size": 1})
    assert (other["apiVersion"], other["spec"]) == ("example.io/v1alpha1", {"colour": "red"})
    fleet.commit({f"{A}/w.json": widget("v1", colour="red")})
    assert set(fleet.held()) == {"root:a"}


def test_a_crd_of_one_workspace_is_none_of_another(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd(), f"{B}/w.json": widget(size=1)})
    assert set(fleet.held()) == {"root:b"}


def test_a_crd_and_its_objects_may_go_in_one_commit(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    key = fleet.key("root:a", "widgets.example.io", "w")
    fleet.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    assert fleet.held() == {}
    assert fleet.store.get(key) is None


def test_a_crd_that_goes_while_git_has_objects_holds_the_workspace(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    fleet.commit({f"{A}/crd.json": None})
    assert set(fleet.held()) == {"root:a"}
    assert fleet.get("root:a", "widgets.example.io", "w")["spec"] == {"size": 1}


def test_a_crd_that_goes_takes_runtime_objects_along(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    key = fleet.key("root:a", "widgets.example.io", "w")
    runtime = key._replace(name="runtime")
    fleet.put(runtime, json.loads(widget(name="runtime")))
    fleet.delete({f"{A}/crd.json": None, f"{A}/w.json": None})
    assert fleet.store.get(runtime) is None


def test_a_binding_that_goes_takes_runtime_objects_along(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    runtime = fleet.key("root:b", "widgets.example.io", "w")._replace(name="runtime")
    fleet.put(runtime, json.loads(widget(name="runtime")))
    fleet.delete({f"{B}/binding.json": None, f"{B}/w.json": None})
    assert fleet.store.get(runtime) is None


def test_a_changed_schema_checks_all_objects_again(fleet: LoadedFleet) -> None:
    fleet.commit({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    fleet.commit({f"{A}/crd.json": crd(kind="string")})
    [error] = fleet.held()["root:a"]
    assert error.startswith(f"{A}/w.json:1: Widget w: spec.size: Invalid value")
    fleet.commit({f"{A}/w.json": widget(size="big")})
    assert fleet.held() == {}


def test_an_object_may_change_its_version(fleet: LoadedFleet) -> None:
    two = json.loads(crd("v1alpha1"))
    fleet.commit({f"{A}/crd.json": json.dumps(two), f"{A}/w.json": widget("v1alpha1", size=1)})
    uid = fleet.get("root:a", "widgets.example.io", "w")["metadata"]["uid"]
    two["spec"]["versions"][0]["storage"] = False
    two["spec"]["versions"].append({**two["spec"]["versions"][0], "name": "v1", "storage": True})
    fleet.commit({f"{A}/crd.json": json.dumps(two), f"{A}/w.json": widget("v1", size=1)})
    assert fleet.held() == {}
    found = fleet.get("root:a", "widgets.example.io", "w")
    assert (found["apiVersion"], found["metadata"]["uid"]) == ("example.io/v1", uid)


@pytest.mark.parametrize(("provider", "consumer"), [(A, B), (B, A)])
def test_export_binding_and_bound_object_may_come_in_one_commit(
    fleet: LoadedFleet, provider: str, consumer: str
) -> None:
    paths = {A: "root:a", B: "root:b"}
    fleet.commit({**provide(provider), **consume(consumer, paths[provider])})
    assert fleet.held() == {}
    assert fleet.get(paths[consumer], "widgets.example.io", "w")["spec"] == {"size": 1}
    assert ready(fleet, paths[consumer]) == ("True", "Ready")
    assert fleet.find(paths[provider], "widgets.example.io", "w") is None


@pytest.mark.parametrize(("provider", "consumer"), [(A, B), (B, A)])
def test_and_in_the_very_first(empty: LoadedFleet, provider: str, consumer: str) -> None:
    paths = {A: "root:a", B: "root:b"}
    empty.begin({**provide(provider), **consume(consumer, paths[provider])})
    assert empty.held() == {}
    assert empty.get(paths[consumer], "widgets.example.io", "w")["spec"] == {"size": 1}


def test_bound_objects_are_stored_under_the_identity_of_the_export(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), **consume()})
    identity = fleet.get("root:a", "apiexports.apis.kcp.io", "widgets", "")["status"]["identityHash"]
    assert fleet.key("root:b", "widgets.example.io", "w").resource == f"widgets.example.io:{identity}"
    bound = fleet.get("root:b", "apibindings.apis.kcp.io", "widgets", "")["status"]
    assert bound["boundResources"][0]["schema"]["identityHash"] == identity
    assert bound["apiExportClusterName"] == fleet.record("root:a").cluster


def test_a_binding_may_wait_for_its_export(fleet: LoadedFleet) -> None:
    fleet.commit({f"{B}/binding.json": binding("root:a")})
    assert fleet.held() == {}
    assert ready(fleet, "root:b") == ("False", "APIExportNotFound")
    fleet.commit(provide())
    assert ready(fleet, "root:b") == ("True", "Ready")
    fleet.commit({f"{B}/w.json": widget(size=1)})
    assert fleet.held() == {}


def test_a_workspace_that_is_held_for_a_missing_export_is_healed_by_it(fleet: LoadedFleet) -> None:
    fleet.commit(consume())
    assert set(fleet.held()) == {"root:b"}
    fleet.commit(provide())
    assert fleet.held() == {}
    assert fleet.get("root:b", "widgets.example.io", "w")["spec"] == {"size": 1}


def test_a_workspace_that_was_never_good_for_want_of_an_export_is_healed_by_it(empty: LoadedFleet) -> None:
    empty.begin(consume())
    assert not empty.record("root:b").served
    empty.commit(provide())
    assert empty.held() == {}
    assert empty.record("root:b").served


def test_a_binding_may_wait_for_a_workspace(fleet: LoadedFleet) -> None:
    directory = "workspaces/root/late"
    fleet.commit(consume(B, "root:late"))
    fleet.commit({f"{directory}/workspace.yaml": "", **provide(directory)})
    assert fleet.held() == {}
    assert ready(fleet, "root:b") == ("True", "Ready")


def test_names_that_collide_are_refused_with_a_condition(fleet: LoadedFleet) -> None:
    fleet.commit({**provide(), f"{B}/crd.json": crd(), f"{B}/binding.json": binding("root:a")})
    assert fleet.held() == {}
    assert ready(fleet, "root:b") == ("False", "NamingConflicts")
    fleet.commit({f"{B}/w.json": widget(size=1)})
    assert fleet.key("root:b", "widgets.example.io", "w").resource == "widgets.example.io"


def test_two_providers_of_one_name_never_share_storage(fleet: LoadedFleet) -> None:
    c = "workspaces/root/c"
    fleet.commit(
        {
            **provide(A),
            **provide(B),
            "workspaces/root/c/workspace.yaml": "",
            "workspaces/root/d/workspace.yaml": "",
            **consume(c, "root:a"),
            **consume("workspaces/root/d", "root:b"),
        }
    )
    assert fleet.held() == {}
    resources = {fleet.key(path, "widgets.example.io", "w").resource for path in ("root:c", "root:d")}
    assert len(resources) == 2


def test_an_export_without_path_is_the_workspaces_own(fleet: LoadedFleet) -> None:
    own = json.loads(binding("root:a"))
    del own["spec"]["reference"]["export"]["path"]
    fleet.commit({**provide(), f"{A}/binding.json": json.dumps(own), f"{A}/w.json": widget(size=1)})
    assert fleet.held() == {}
    assert fleet.get("root:a", "widgets.example.io", "w")["spec"] == {"size": 1}
    identity = fleet.get("root:a", "apiexports.apis.kcp.io", "widgets", "")["status"]["identityHash"]
    assert fleet.key("root:a", "widgets.example.io", "w").resource.endswith(identity)
    fleet.recheck(["root:a"])
    assert fleet.all_changes() == []
    fleet.commit(TEXT)
    # Its own content is nobody else's.
    assert set(fleet.held()) == {"root:a"}
    fleet.commit({f"{A}/w.json": widget(size="big")})
    assert fleet.held() == {}
    assert fleet.get("root:a", "widgets.example.io", "w")["spec"] == {"size": "big"}


def test_providers_of_each_other_are_no_endless_loop(fleet: LoadedFleet) -> None:
    other = schema().replace("widgets", "gadgets").replace("Widget", "Gadget").replace("widget", "gadget")
    gadgets = export().replace("widgets", "gadgets")
    fleet.commit(
        {
            **provide(A),
            f"{A}/binding.json": binding("root:b", "gadgets", "gadgets"),
            f"{B}/schema.json": other,
            f"{B}/export.json": gadgets,
            **consume(B, "root:a"),
        }
    )
    assert fleet.held() == {}
    assert ready(fleet, "root:a", "gadgets") == ("True", "Ready")
    assert ready(fleet, "root:b") == ("True", "Ready")


def test_workload_kinds_are_bound_from_what_ships(fleet: LoadedFleet) -> None:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            },
        },
    }
    kubernetes = binding("root:compute", "kubernetes", "kubernetes")
    fleet.commit({f"{A}/web.json": json.dumps(deployment), f"{A}/binding.json": kubernetes})
    assert fleet.held() == {}
    found = fleet.get("root:a", "deployments.apps", "web")
    assert found["spec"]["replicas"] == 1
    assert found["metadata"]["generation"] == 1
    fleet.recheck(fleet.paths())
    assert fleet.all_changes() == []


def test_an_exports_maximal_policy_limits_consumers_until_the_export_goes(fleet: LoadedFleet) -> None:
    limited = json.loads(export())
    limited["spec"]["maximalPermissionPolicy"] = {"local": {}}
    fleet.commit({**provide(), f"{A}/export.json": json.dumps(limited), **consume()})
    assert fleet.held() == {}
    user = User("a", (KCP_ADMIN, AUTHENTICATED))
    asked = Attributes("get", "example.io", "v1", "widgets", namespace="default", name="w")
    authorizer = Authorizer(fleet.store)

    def allowed() -> bool:
        return authorizer.authorize(fleet.record("root:b").cluster, user, asked).allowed

    assert not allowed()
    fleet.delete({f"{A}/export.json": None})
    assert fleet.get("root:b", "widgets.example.io", "w")
    assert allowed()


def test_a_binding_to_an_export_of_its_own_workspace_records_the_schema(
    fleet: LoadedFleet, another: Callable[..., LoadedFleet]
) -> None:
    fleet.commit({**provide(), f"{A}/binding.json": binding("root:a")})
    uid = fleet.get("root:a", "apiresourceschemas.apis.kcp.io", "v1.widgets.example.io", "")["metadata"]["uid"]
    fleet.publish()
    again = another(fleet)
    again.load(again.recorded())
    for each in (fleet, again):
        [bound] = each.get("root:a", "apibindings.apis.kcp.io", "widgets", "")["status"]["boundResources"]
        assert bound["schema"]["UID"] == uid
