"""Which new objects admission completes, and that a server may do without."""

from __future__ import annotations

from typing import cast

from apiserver.admission import completion
from apiserver.admission.completion import completing, vetting
from apiserver.admission.place import Place
from apiserver.admission.plugins import PLUGINS
from apiserver.registry import kinds
from apiserver.registry.rest_options import complete_nothing, vet_nothing
from apiserver.storage.protocol import Store

PLACE = Place(cast("Store", None), "c", "default")


def kind(resource: str, group: str = "") -> kinds.ServedKind:
    found = kinds.target_builtins().by_resource(group, "v1", resource)
    assert found is not None
    return found


def test_some_kinds_are_completed() -> None:
    assert completing(kind("pods"), PLACE) is not complete_nothing
    assert completing(kind("configmaps"), PLACE) is complete_nothing


def test_a_plugin_that_is_turned_off_does_nothing() -> None:
    assert completion._COMPLETING.keys() | completion._VETTING.keys() == PLUGINS
    for resource in ("pods", "nodes", "persistentvolumeclaims"):
        assert completing(kind(resource), PLACE, PLUGINS) is complete_nothing
    assert vetting(kind("persistentvolumeclaims"), PLACE, vet_nothing, PLUGINS) is vet_nothing
    node: dict[str, object] = {"metadata": {"name": "a"}, "spec": {}}
    completing(kind("nodes"), PLACE, frozenset({"ServiceAccount"}))(node)
    assert "taints" in cast("dict[str, object]", node["spec"])
