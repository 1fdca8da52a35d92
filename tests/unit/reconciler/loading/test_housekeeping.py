"""What the loops over the store do to what commits loaded: nothing, but for what a commit left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.following import Following
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model.keys import Key
from apiserver.registry.catalog import Catalog
from apiserver.registry.objects import Objects
from reconciler.controllers.housekeeping import housekeeping

SPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
OWNED = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: owned
  ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: nobody, uid: 11111111-2222-3333-4444-555555555555}]
"""
CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.x.io}
spec:
  group: x.io
  names: {plural: gadgets, kind: Gadget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""


@pytest.fixture
def keeping(fleet: LoadedFleet) -> Iterator[Following]:
    follower = Following(fleet.store, lambda feed: housekeeping(feed, Catalog(fleet.store).kinds))
    follower.start()
    yield follower
    follower.stop()


def made(fleet: LoadedFleet, resource: str, name: str, **content: Any) -> Key:
    """An object that came through the API."""
    key = Key(resource, fleet.record("root:a").cluster, "shop", name)
    Objects(fleet.store).create(key, {"metadata": {}, **content}, runtime=True)
    return key


def test_a_loaded_fleet_is_left_as_it_is(
    fleet: LoadedFleet, keeping: Following, eventually: Callable[..., Any]
) -> None:
    fleet.commit({f"{A}/shop.yaml": SPACE, f"{A}/owned.yaml": OWNED, f"{A}/crd.yaml": CRD})
    before = fleet.store.revision()
    eventually(lambda: keeping.idle)
    assert fleet.store.revision() == before
    again = Following(fleet.store, lambda feed: housekeeping(feed, Catalog(fleet.store).kinds))
    again.start()
    eventually(lambda: again.idle)
    again.stop()
    assert fleet.store.revision() == before


def test_what_was_made_in_a_namespace_goes_when_a_commit_takes_it_away(
    fleet: LoadedFleet, keeping: Following, eventually: Callable[..., Any]
) -> None:
    fleet.commit({f"{A}/shop.yaml": SPACE, f"{A}/x.yaml": configmap("x", "shop")})
    keys = [
        made(fleet, "events", "e", kind="Event", apiVersion="v1"),
        made(fleet, "leases.coordination.k8s.io", "l", kind="Lease", apiVersion="coordination.k8s.io/v1"),
        made(fleet, "configmaps", "c", kind="ConfigMap", apiVersion="v1"),
    ]
    eventually(lambda: keeping.idle)
    assert all(fleet.store.get_many(keys))
    fleet.delete({f"{A}/shop.yaml": None, f"{A}/x.yaml": None})
    eventually(lambda: not any(fleet.store.get_many(keys)))


def test_instances_go_with_the_definition_that_a_commit_takes_away(
    fleet: LoadedFleet, keeping: Following, eventually: Callable[..., Any]
) -> None:
    fleet.commit({f"{A}/shop.yaml": SPACE, f"{A}/crd.yaml": CRD})
    key = made(fleet, "gadgets.x.io", "g", kind="Gadget", apiVersion="x.io/v1")
    eventually(lambda: keeping.idle)
    fleet.delete({f"{A}/crd.yaml": None})
    eventually(lambda: fleet.store.get(key) is None)
