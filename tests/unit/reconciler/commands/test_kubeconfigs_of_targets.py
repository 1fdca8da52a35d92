"""Where the syncer's kubeconfigs come from, and which of them may name any address."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.auth.pki import ensure_keys
from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.proxyprotocol import LOCAL
from apiserver.registry import codec, tree
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, Store
from reconciler.commands.targets import Kubeconfigs
from reconciler.controllers.targets import Kubeconfig, Missing
from reconciler.syncing import kubeconfig

REFERENCE = {"namespace": "default", "name": "west", "key": "kubeconfig"}


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(tmp_path / "store", sync=False)
    for path in ("root:infra", "root:shop"):
        cluster = path.rpartition(":")[2] + "0"
        record = tree.WorkspaceRecord(path, cluster, "root")
        opened.write(tree.put_workspace(record), tree.placed(record)).result()
    yield opened
    opened.close()


@pytest.fixture
def kubeconfigs(store: Store, tmp_path: Path) -> Kubeconfigs:
    return Kubeconfigs(store, ensure_keys(tmp_path / "keys"), "https://127.0.0.1:6443", ["root:infra"])


def target(cluster: str, **connection: Any) -> dict[str, Any]:
    return {"metadata": {"name": "west", "annotations": {marks.CLUSTER: cluster}}, "spec": {"connection": connection}}


def secret(store: Store, cluster: str, **data: str) -> None:
    key = Key("secrets", cluster, "default", "west")
    metadata = {"name": "west", "namespace": "default", "uid": "u"}
    obj = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    store.write(Put(key, codec.encode(obj))).result()


def test_only_targets_of_trusted_workspaces_may_be_anywhere(store: Store, kubeconfigs: Kubeconfigs) -> None:
    for cluster in ("infra0", "shop0"):
        secret(store, cluster, kubeconfig=base64.b64encode(b"{}").decode())
    trusted = kubeconfigs(target("infra0", kubeconfigSecretRef=REFERENCE))
    other = kubeconfigs(target("shop0", kubeconfigSecretRef=REFERENCE))
    assert isinstance(trusted, Kubeconfig)
    assert isinstance(other, Kubeconfig)
    assert (trusted.anywhere, other.anywhere) == (True, False)
    assert not trusted.embedded, "others may write to it"
    assert other.remedy.endswith("`treeplane up --trust-targets root:shop`")
    assert "{}" not in repr(other)


def test_an_embedded_target_is_this_very_server(kubeconfigs: Kubeconfigs) -> None:
    found = kubeconfigs(target("shop0", embedded={}))
    assert isinstance(found, Kubeconfig)
    assert found.anywhere
    assert found.embedded
    access = kubeconfig.read(found.data)
    assert (access.host, access.port, access.path) == ("127.0.0.1", 6443, "/targets/root:shop:west")
    assert "exec" not in yaml.safe_load(found.data)["users"][0]["user"]


def test_a_secret_of_another_workspace_is_not_found(store: Store, kubeconfigs: Kubeconfigs) -> None:
    """A reference has no workspace: it means the target's own, and paths in it are names that no Secret has."""
    secret(store, "infra0", kubeconfig=base64.b64encode(b"{}").decode())
    for name, namespace in (("west", "default"), ("../infra0/default/west", "default"), ("west", "../infra0/default")):
        found = kubeconfigs(target("shop0", kubeconfigSecretRef={**REFERENCE, "name": name, "namespace": namespace}))
        assert isinstance(found, Missing)
        assert "put it into keys/secrets/root:shop/" in found.why


@pytest.mark.parametrize(("data", "why"), [({}, "has no key kubeconfig"), ({"kubeconfig": "%"}, "is not base64")])
def test_secrets_that_hold_no_kubeconfig(store: Store, kubeconfigs: Kubeconfigs, data: Any, why: str) -> None:
    secret(store, "infra0", **data)
    found = kubeconfigs(target("infra0", kubeconfigSecretRef=REFERENCE))
    assert isinstance(found, Missing)
    assert why in found.why


def test_among_proxies_embedded_targets_are_told_that_nobody_is_behind_us(store: Store, tmp_path: Path) -> None:
    for among, first in ((True, LOCAL), (False, b"")):
        found = Kubeconfigs(store, ensure_keys(tmp_path / "keys"), "https://127.0.0.1:6443", among_proxies=among)
        secret(store, "infra0", kubeconfig=base64.b64encode(b"{}").decode())
        embedded, real = (
            found(target("infra0", **how)) for how in ({"embedded": {}}, {"kubeconfigSecretRef": REFERENCE})
        )
        assert isinstance(embedded, Kubeconfig)
        assert isinstance(real, Kubeconfig)
        assert (embedded.first, real.first) == (first, b"")
