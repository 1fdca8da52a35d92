"""What of an administrator's kubeconfig goes into the one that a server uses, and what is refused."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from apiserver.auth.pki import ensure_keys
from reconciler.commands.failure import Failure
from reconciler.commands.targeting.usable import address_notes, usable
from reconciler.syncing import kubeconfig as reading

SERVER = "https://api.example.com:6443"


def config(**cluster: Any) -> dict[str, Any]:
    user = {"exec": {"command": "cloud-login"}, "client-key-data": "c2VjcmV0"}
    return {
        "clusters": [{"name": "c", "cluster": {"server": SERVER, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }


@pytest.mark.parametrize(
    ("cluster", "why"),
    [
        ({"insecure-skip-tls-verify": True}, "insecure-skip-tls-verify"),
        ({"proxy-url": "http://proxy:3128"}, "proxy-url"),
        ({"certificate-authority": "/etc/ca.crt"}, "certificate-authority"),
        ({"server": "http://api.example.com"}, "credentials go to https alone"),
        ({"server": "https://user:password@api.example.com"}, "a host, a port and a path"),
        ({"certificate-authority-data": "%"}, "not base64"),
    ],
)
def test_what_a_server_cannot_use_is_refused_by_name(cluster: dict[str, Any], why: str) -> None:
    with pytest.raises(Failure, match=why) as raised:
        usable(config(**cluster))
    assert raised.value.exit_code == 2
    assert "password" not in str(raised.value)


def test_a_kubeconfig_without_a_cluster() -> None:
    for content in ({}, {"clusters": None}, {"clusters": []}, {"clusters": [{"name": "c"}]}):
        with pytest.raises(Failure, match="names no cluster"):
            usable(content)


def test_address_ca_and_token_go_in_and_nothing_of_the_user(tmp_path: Path) -> None:
    ca = ensure_keys(tmp_path / "keys").ca.read_bytes()
    found = usable(config(**{"certificate-authority-data": base64.b64encode(ca).decode()})).kubeconfig("t0ken")
    access = reading.read(found)
    assert (access.host, access.port, access.ca, access.token) == ("api.example.com", 6443, ca, "t0ken")
    assert b"exec" not in found
    assert b"c2VjcmV0" not in found


def test_another_address_keeps_the_name_of_the_certificate() -> None:
    found = usable(config(), "https://10.0.0.1:6443")
    access = reading.read(found.kubeconfig("t"))
    assert (access.host, access.name) == ("10.0.0.1", "api.example.com")
    assert "tls-server-name" not in yaml.safe_load(usable(config()).kubeconfig("t"))["clusters"][0]["cluster"]


@pytest.mark.parametrize(
    ("server", "told"),
    [
        ("https://8.8.8.8:6443", []),
        ("https://10.0.0.1:6443", ["treeplane up --trust-targets root:infra`"]),
        ("https://127.0.0.1:6443", ["the server's own machine", "treeplane up --trust-targets root:infra`"]),
    ],
)
def test_what_an_address_needs(server: str, told: list[str]) -> None:
    notes = address_notes(usable(config(), server), "root:infra")
    assert len(notes) == len(told)
    assert all(part in note for part, note in zip(told, notes, strict=True))
