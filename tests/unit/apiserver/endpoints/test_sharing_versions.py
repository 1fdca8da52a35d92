"""APIExports and APIBindings, stored in v1alpha2, as a client of either version sees them."""

from typing import Any

import pytest

GROUP = "/clusters/root:shop/apis/apis.kcp.io"
RESOURCE = {"name": "widgets", "group": "example.io", "schema": "v1.widgets.example.io", "storage": {"crd": {}}}


@pytest.fixture
def export(api: Any) -> Any:
    spec = {"resources": [RESOURCE], "permissionClaims": [{"group": "", "resource": "secrets", "verbs": ["get"]}]}
    made = api.manifest("apis.kcp.io/v1alpha2 APIExport", "widgets", "", api.SHOP, spec=spec)
    api.put(made)
    return made


def test_each_version_shows_it_in_its_own_words(api: Any, run: Any, export: Any) -> None:
    newer = run(api.get(f"{GROUP}/v1alpha2/apiexports/widgets")).json
    assert (newer["apiVersion"], newer["spec"]["resources"]) == ("apis.kcp.io/v1alpha2", [RESOURCE])
    [older] = run(api.get(f"{GROUP}/v1alpha1/apiexports")).json["items"]
    assert older["apiVersion"] == "apis.kcp.io/v1alpha1"
    assert older["spec"]["latestResourceSchemas"] == ["v1.widgets.example.io"]
    assert older["spec"]["permissionClaims"] == [{"group": "", "resource": "secrets", "all": True}]
    assert older["metadata"]["uid"] == newer["metadata"]["uid"]


def test_a_watch_of_the_older_version_follows_what_is_stored_in_the_newer(api: Any, run: Any, export: Any) -> None:
    async def follow() -> Any:
        watch = api.watch(f"{GROUP}/v1alpha1/apiexports?watch=1")
        first = await watch.next()
        api.put({**export, "spec": {"resources": []}})
        second = await watch.next()
        await watch.leave()
        return first["object"]["spec"], second["object"]["spec"]

    first, second = run(follow())
    assert first["latestResourceSchemas"] == ["v1.widgets.example.io"]
    assert (second["latestResourceSchemas"], "resources" in second) == ([], False)


def test_the_older_name_of_the_group_has_both_versions(api: Any, run: Any, export: Any) -> None:
    for version, field in (("v1alpha1", "latestResourceSchemas"), ("v1alpha2", "resources")):
        found = run(api.get(f"/clusters/root:shop/apis/apis.kcp.dev/{version}/apiexports/widgets")).json
        assert found["apiVersion"] == f"apis.kcp.dev/{version}"
        assert field in found["spec"]


def test_a_claim_without_the_identity_that_it_needs_is_refused_in_kcps_words(api: Any, run: Any) -> None:
    api.put_workspace("root:shop", api.SHOP, writes="Commit")
    claim = {"group": "example.io", "resource": "gadgets", "verbs": ["get"]}
    body = {"kind": "APIExport", "apiVersion": "apis.kcp.io/v1alpha2", "metadata": {"name": "e"},
            "spec": {"permissionClaims": [claim]}}  # fmt: skip
    refused = run(api.call("POST", f"{GROUP}/v1alpha2/apiexports", body))
    assert refused.status == 422
    assert "identityHash is required for API types that are not built-in" in refused.message
