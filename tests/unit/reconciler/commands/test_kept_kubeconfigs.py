"""New tokens of targets are written to the file of keys/secrets/ that the old ones came from, and nowhere else."""

from __future__ import annotations

import base64
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.registry import codec, tree
from apiserver.registry.objects import Objects
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, Store
from reconciler.commands.keptkubeconfigs import KeptKubeconfigs
from reconciler.controllers.failures import Expected
from reconciler.layout.secrets import read_secrets

OLD, NEW = b"old: 1\n", b"new: 2\n"
TARGET = {
    "metadata": {"name": "west", "annotations": {marks.CLUSTER: "infra0"}},
    "spec": {"connection": {"kubeconfigSecretRef": {"namespace": "default", "name": "west"}}},
}
OF_KEYS = "keys/secrets/root:infra/west.yaml"


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(tmp_path / "store", sync=False)
    record = tree.WorkspaceRecord("root:infra", "infra0", "root")
    opened.write(tree.put_workspace(record), tree.placed(record)).result()
    yield opened
    opened.close()


@pytest.fixture
def stands(store: Store, tmp_path: Path) -> Callable[..., Path]:
    """A Secret in the store, and its file where it has one."""

    def put(path: str, text: str = "") -> Path:
        mark = {marks.SOURCE_PATH: path, marks.SOURCE_COMMIT: "c1"} if path else {}
        metadata = {"name": "west", "namespace": "default", "uid": "u", "annotations": mark}
        data = {"kubeconfig": base64.b64encode(OLD).decode()}
        obj = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
        store.write(Put(Key("secrets", "infra0", "default", "west"), codec.encode(obj))).result()
        file = tmp_path / path
        if text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return file

    return put


@pytest.fixture
def kept(store: Store, tmp_path: Path) -> KeptKubeconfigs:
    (tmp_path / "keys" / "secrets").mkdir(parents=True)
    return KeptKubeconfigs(store, tmp_path / "keys")


def text(field: str, value: str) -> str:
    return (
        "# Of the cluster in Dublin.\napiVersion: v1\nkind: Secret\nmetadata: {name: other}\n---\n"
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: west # ours\n{field}:\n  more: 'x'\n  kubeconfig: {value}\n"
    )


@pytest.mark.parametrize(("field", "value"), [("data", base64.b64encode(OLD).decode()), ("stringData", '"old: 1\\n"')])
def test_the_file_has_the_new_one_and_every_other_byte(
    stands: Callable[..., Path], kept: KeptKubeconfigs, tmp_path: Path, field: str, value: str
) -> None:
    file = stands(OF_KEYS, text(field, value))
    assert kept.refuses(TARGET) == ""
    kept.keep(TARGET, OLD, NEW)
    assert file.read_text().startswith("# Of the cluster in Dublin.\n")
    assert "# ours" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(each.name for each in file.parent.iterdir()) == ["west.yaml"]
    [other, west] = read_secrets(tmp_path / "keys").by_workspace["root:infra"]
    assert (other.name, west.name) == ("other", "west")
    said = yaml.safe_load_all(file.read_text())
    found = list(said)[1][field]["kubeconfig"]
    assert (found.encode() if field == "stringData" else base64.b64decode(found)) == NEW


def test_what_somebody_changed_meanwhile_stays(stands: Callable[..., Path], kept: KeptKubeconfigs) -> None:
    file = stands(OF_KEYS, text("data", base64.b64encode(b"mine").decode()))
    before = file.read_bytes()
    with pytest.raises(Expected, match="another by now"):
        kept.keep(TARGET, OLD, NEW)
    file.write_text("no: yaml: at all")
    with pytest.raises(Expected, match="another by now"):
        kept.keep(TARGET, OLD, NEW)
    assert before != file.read_bytes()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("workspaces/root/infra/west.yaml", "stands in git"),
        ("keys/secrets/root:shop/west.yaml", "stands in no file of keys/secrets/root:infra/"),
        ("keys/secrets/root:infra/../root:shop/west.yaml", "stands in no file"),
        ("keys/ca.key", "stands in no file"),
        ("keys/../outside.yaml", "stands in no file"),
    ],
)
def test_no_file_but_one_of_its_own_workspace_in_keys_is_written(
    stands: Callable[..., Path], kept: KeptKubeconfigs, path: str, why: str
) -> None:
    file = stands(path, text("data", base64.b64encode(OLD).decode()))
    before = file.read_bytes()
    assert why in kept.refuses(TARGET)
    with pytest.raises(Expected, match="stands in"):
        kept.keep(TARGET, OLD, NEW)
    assert file.read_bytes() == before


def test_what_only_the_store_has_is_written_there(
    stands: Callable[..., Path], kept: KeptKubeconfigs, store: Store
) -> None:
    stands("")
    kept.keep(TARGET, OLD, NEW)
    found = Objects(store).get(Key("secrets", "infra0", "default", "west"))
    assert found is not None
    assert base64.b64decode(found["data"]["kubeconfig"]) == NEW
    with pytest.raises(Expected, match="another by now"):
        kept.keep(TARGET, OLD, NEW)
