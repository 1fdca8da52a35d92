"""Kubeconfig files: the administrators', and those that the syncer gets for embedded targets.

Called by `up` once the port is known. Everything that a user or a plugin added to the administrators' file stays, its
current context included; only our own entries are made anew.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from apiserver.auth.files import private_directory, write_private
from apiserver.auth.keys import OWN_NAME
from apiserver.auth.pki import ADMIN, SHARD_ADMIN, Keys, Pair
from apiserver.model.paths import ROOT, SYSTEM_ADMIN

_CONTEXTS = (
    ("root", f"/clusters/{ROOT}", ADMIN),
    ("base", "", ADMIN),
    ("shard-base", "", SHARD_ADMIN),
    (SYSTEM_ADMIN, f"/clusters/{SYSTEM_ADMIN}", SHARD_ADMIN),
)
"""As kcp names them, with path and user. The first is current until the user chooses another."""
_PLUGIN = "workspace.kcp.io/"
"""Contexts that `kubectl ws` writes; they name workspaces of this server."""

Config = dict[str, Any]


def syncer_kubeconfig(url: str, keys: Keys) -> Config:
    """For the syncer at an embedded target, `url` being `https://host:port/targets/<workspace path>:<name>`.

    It asks for the server's own certificate, whatever else is served there."""
    name = "target"
    cluster = _cluster(name, url, keys.ca.read_bytes())
    cluster["cluster"]["tls-server-name"] = OWN_NAME
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [_user(name, keys.syncer)],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def write_admin_kubeconfig(path: Path, url: str, keys: Keys, ca: bytes | None = None) -> None:
    """Make or refresh the administrators' file. `url`: the server's, without a trailing slash. `ca`: certificates (PEM)
    that vouch for the server there; None: the fleet's CA; b"": whatever the client trusts anyway.

    Contexts are kcp's, `root` current at first. Those of `kubectl ws` follow the server to its new address.
    Raises ValueError where the file is there but is not a kubeconfig: it is the user's, so it is not overwritten.
    """
    _directory_of(path)
    config = _read(path)
    ca = keys.ca.read_bytes() if ca is None else ca
    for name, suffix, user in _CONTEXTS:
        _set(config["clusters"], _cluster(name, f"{url}{suffix}", ca))
        # A namespace chosen with `kubectl config set-context` stays.
        old = next((c.get("context") for c in config["contexts"] if c.get("name") == name), None) or {}
        _set(config["contexts"], {"name": name, "context": {**old, "cluster": name, "user": user}})
    for user, pair in ((ADMIN, keys.admin), (SHARD_ADMIN, keys.shard_admin)):
        _set(config["users"], _user(user, pair))
    for entry in config["clusters"]:
        _follow(entry, url, ca)
    if config.get("current-context") not in {c.get("name") for c in config["contexts"]}:
        config["current-context"] = ROOT
    text = yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    if not path.exists() or path.read_bytes() != text:
        write_private(path, text)


def _directory_of(path: Path) -> None:
    """Make the directory of `path`; one that is there keeps its mode, since it may be the user's."""
    if not path.parent.exists():
        private_directory(path.parent)


def _read(path: Path) -> Config:
    config: Any = {}
    if path.exists():
        try:
            config = yaml.load(path.read_text(), Loader=yaml.CSafeLoader) or {}
        except yaml.YAMLError as error:
            raise ValueError(f"{path}: not a kubeconfig: repair or remove it: {error}") from error
    if not isinstance(config, dict):
        raise ValueError(f"{path}: not a kubeconfig: repair or remove it")
    found: Config = {"apiVersion": "v1", "kind": "Config", **config}
    for section in ("clusters", "users", "contexts"):
        found[section] = found.get(section) or []
    return found


def _set(entries: list[Config], entry: Config) -> None:
    """Replace the entry of that name, or add it."""
    for at, old in enumerate(entries):
        if old.get("name") == entry["name"]:
            entries[at] = entry
            return
    entries.append(entry)


def _follow(entry: Config, url: str, ca: bytes) -> None:
    if not str(entry.get("name", "")).startswith(_PLUGIN):
        return
    path = urlsplit((entry.get("cluster") or {}).get("server", "")).path
    entry["cluster"] = _cluster("", f"{url}{path}", ca)["cluster"]


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _cluster(name: str, url: str, ca: bytes) -> Config:
    trusted = {"certificate-authority-data": _data(ca)} if ca else {}
    return {"name": name, "cluster": {"server": url, **trusted}}


def _user(name: str, pair: Pair) -> Config:
    certificate, key = _data(pair.certificate.read_bytes()), _data(pair.key.read_bytes())
    return {"name": name, "user": {"client-certificate-data": certificate, "client-key-data": key}}
