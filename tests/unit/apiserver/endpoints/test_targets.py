"""Embedded sync targets appear with their SyncTarget and go with it."""

from pathlib import Path
from typing import Any

from apiserver.endpoints.targets import EmbeddedTargets, NoTargets
from apiserver.model.keys import Key
from apiserver.registry import codec, tree
from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.catalog import Catalog
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put


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


def test_a_workspace_made_through_the_api_finds_nothing_of_who_had_its_path_before(api: Any, tmp_path: Path) -> None:
    opened: list[Path] = []

    def open_one(directory: Path) -> Any:
        opened.append(directory)
        return open_store(directory, sync=False)

    targets = EmbeddedTargets(api.store, tmp_path, open_one, lambda s: Catalog(s, target_builtins()))
    key = Key("synctargets.workload.kcp.io", "", "", "east")
    spec = {"metadata": {"name": "east"}, "spec": {"connection": {"embedded": {}}}}
    realms = []
    for cluster in ("0123456789abcdef", "fedcba9876543210"):
        record = tree.WorkspaceRecord("root:lab", cluster, "root", stored=True)
        api.store.write(tree.put_workspace(record), tree.placed(record)).result()
        api.store.write(Put(key._replace(cluster=cluster), codec.encode(spec))).result()
        realms.append(targets.realm("root:lab", "east"))
    assert [path.name for path in opened] == ["0123456789abcdef:east", "fedcba9876543210:east"]
    assert realms[0] is not realms[1]
    api.store.write(*tree.forgotten(record)).result()
    assert targets.realm("root:lab", "east") is None
    targets.close()


def test_kinds_of_kubernetes_that_are_deprecated_say_so(api: Any, run: Any) -> None:
    reply = run(api.get("/targets/root:edge/api/v1/namespaces/default/endpoints"))
    expected = '299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"'
    assert (reply.status, reply.headers["warning"]) == (200, expected)
    assert "warning" not in run(api.get("/targets/root:edge/api/v1/namespaces/default/services")).headers
