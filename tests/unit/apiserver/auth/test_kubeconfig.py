"""The administrators' kubeconfig: made once, refreshed without taking anything from the user."""

import base64
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.auth.kubeconfig import syncer_kubeconfig, write_admin_kubeconfig
from apiserver.auth.pki import Keys, ensure_keys


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return ensure_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "admin.kubeconfig"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def servers(config: dict[str, Any]) -> dict[str, str]:
    return {c["name"]: c["cluster"]["server"] for c in config["clusters"]}


def test_first_start(path: Path, keys: Keys) -> None:
    write_admin_kubeconfig(path, "https://127.0.0.1:6443", keys)
    config = read(path)
    assert config["current-context"] == "root"
    url = "https://127.0.0.1:6443"
    assert servers(config) == {
        "root": f"{url}/clusters/root",
        "base": url,
        "shard-base": url,
        "system:admin": f"{url}/clusters/system:admin",
    }
    bearers = {c["name"]: c["context"]["user"] for c in config["contexts"]}
    assert bearers == dict.fromkeys(("root", "base"), "kcp-admin") | dict.fromkeys(
        ("shard-base", "system:admin"), "shard-admin"
    )
    held = {u["name"]: base64.b64decode(u["user"]["client-key-data"]) for u in config["users"]}
    assert held == {"kcp-admin": keys.admin.key.read_bytes(), "shard-admin": keys.shard_admin.key.read_bytes()}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_later_start_keeps_what_the_user_set_and_follows_the_port(path: Path, keys: Keys) -> None:
    write_admin_kubeconfig(path, "https://127.0.0.1:1", keys)
    config = read(path)
    config["clusters"] += [
        {"name": "workspace.kcp.io/current", "cluster": {"server": "https://127.0.0.1:1/clusters/root:a"}},
        {"name": "elsewhere", "cluster": {"server": "https://example.org"}},
    ]
    config["contexts"].append({"name": "mine", "context": {"cluster": "elsewhere", "user": "me", "namespace": "n"}})
    config["current-context"] = "mine"
    config["preferences"] = {"colors": True}
    config["contexts"][0]["context"]["namespace"] = "chosen"
    path.write_text(yaml.safe_dump(config))
    write_admin_kubeconfig(path, "https://127.0.0.1:2", keys)
    config = read(path)
    assert config["current-context"] == "mine"
    assert config["preferences"] == {"colors": True}
    assert config["contexts"][0]["context"]["namespace"] == "chosen"
    assert servers(config) == {
        "root": "https://127.0.0.1:2/clusters/root",
        "base": "https://127.0.0.1:2",
        "shard-base": "https://127.0.0.1:2",
        "system:admin": "https://127.0.0.1:2/clusters/system:admin",
        "workspace.kcp.io/current": "https://127.0.0.1:2/clusters/root:a",
        "elsewhere": "https://example.org",
    }


def test_the_same_again_writes_nothing(path: Path, keys: Keys) -> None:
    write_admin_kubeconfig(path, "https://127.0.0.1:1", keys)
    before = path.stat().st_ino
    write_admin_kubeconfig(path, "https://127.0.0.1:1", keys)
    assert path.stat().st_ino == before


@pytest.mark.parametrize("text", ["- a\n", "{", "just words"])
def test_what_is_no_kubeconfig_is_not_overwritten(tmp_path: Path, keys: Keys, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ValueError, match="not a kubeconfig"):
        write_admin_kubeconfig(path, "https://127.0.0.1:1", keys)
    assert path.read_text() == text


def test_for_the_syncer(keys: Keys) -> None:
    config = syncer_kubeconfig("https://h/targets/root:loc:east", keys)
    assert servers(config) == {"target": "https://h/targets/root:loc:east"}
    assert config["current-context"] == "target"
