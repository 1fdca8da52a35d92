"""Embedded sync targets appear with their SyncTarget and go with it."""

from pathlib import Path
from typing import Any

from apiserver.endpoints.targets import EmbeddedTargets, NoTargets
from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.catalog import Catalog
from apiserver.storage.lmdb import open_store


def test_a_target_is_there_while_it_is_declared(api: Any, tmp_path: Path) -> None:
    opened: list[Path] = []

    def open_one(directory: Path) -> Any:
        opened.append(directory)
        return open_store(directory, sync=False)

    targets = EmbeddedTargets(api.store, tmp_path, open_one, lambda s: Catalog(s, target_builtins()))
    assert targets.realm("root", "east") is None
    east = api.manifest("workload.kcp.io/v1alpha1 SyncTarget", "east", spec={"connection": {"embedded": {}}})
    west = api.manifest("workload.kcp.io/v1alpha1 SyncTarget", "west", spec={"connection": {"kubeconfigSecretRef": {}}})
    api.put(east, west)
    realm = targets.realm("root", "east")
    assert realm is not None
    assert targets.realm("root", "east") is realm
    assert opened == [tmp_path / "root:east"]
    assert targets.realm("root", "west") is None
    assert targets.realm("root:nope", "east") is None
    api.delete(east)
    assert targets.realm("root", "east") is None
    api.put(east)
    assert targets.realm("root", "east") is not realm
    targets.close()
    assert NoTargets().realm("root", "east") is None


def test_kinds_of_kubernetes_that_are_deprecated_say_so(api: Any, run: Any) -> None:
    reply = run(api.get("/targets/root:edge/api/v1/namespaces/default/endpoints"))
    expected = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    assert (reply.status, reply.headers["warning"]) == (200, expected)
    assert "warning" not in run(api.get("/targets/root:edge/api/v1/namespaces/default/services")).headers
