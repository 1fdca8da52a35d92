"""Identity keys of exports: served as Secrets, named by exports, never in git, and for good."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import pytest
from support import widgets
from support.loadedfleet import A, B, LoadedFleet

EXPORTS = "apiexports.apis.kcp.io"
FILES = {f"{A}/schema.json": widgets.schema(), f"{A}/export.json": widgets.export()}
MINE = hashlib.sha256(b"mine").hexdigest()


@pytest.fixture
def offering(empty: LoadedFleet) -> LoadedFleet:
    """root:a offers Widgets, root:b takes them."""
    empty.begin({**FILES, f"{B}/binding.json": widgets.binding("root:a")})
    return empty


def status(fleet: LoadedFleet) -> Any:
    return fleet.get("root:a", EXPORTS, "widgets")["status"]


def key_of(fleet: LoadedFleet, name: str = "widgets") -> bytes:
    return base64.b64decode(fleet.get("root:a", "secrets", name, "kcp-system")["data"]["key"])


def naming(secret: str, namespace: str = "default") -> str:
    export = json.loads(widgets.export())
    export["spec"]["identity"] = {"secretRef": {"namespace": namespace, "name": secret}}
    return json.dumps(export)


def keep(fleet: LoadedFleet, name: str, key: str, namespace: str = "default") -> None:
    metadata = f"{{name: {name}, namespace: {namespace}}}"
    text = f"apiVersion: v1\nkind: Secret\nmetadata: {metadata}\nstringData: {{key: {key}}}\n"
    fleet.keep_secret("root:a", text)


def test_the_key_is_a_secret_of_the_provider_and_its_hash_the_identity(offering: LoadedFleet) -> None:
    assert status(offering)["identityHash"] == hashlib.sha256(key_of(offering)).hexdigest()
    assert offering.condition(offering.get("root:a", EXPORTS, "widgets"), "IdentityValid")["status"] == "True"
    spec = offering.get("root:a", EXPORTS, "widgets")["spec"]
    assert spec["identity"] == {"secretRef": {"namespace": "kcp-system", "name": "widgets"}}
    assert offering.find("root:b", "secrets", "widgets", "kcp-system") is None


def test_no_key_reaches_git(offering: LoadedFleet) -> None:
    key = key_of(offering)
    commit = offering.publish()
    files = offering.repo.files(commit)
    assert files and not any(key.decode() in text or base64.b64encode(key).decode() in text for text in files.values())
    assert not any(key.decode() in text for text in offering.repo.files(offering.repo.head).values())


def test_with_the_export_goes_its_secret(offering: LoadedFleet) -> None:
    offering.commit({f"{B}/binding.json": None})
    offering.commit({f"{A}/export.json": None})
    assert offering.find("root:a", EXPORTS, "widgets") is None
    assert offering.find("root:a", "secrets", "widgets", "kcp-system") is None
    assert offering.find("root:a", "namespaces", "kcp-system") is None


def test_an_export_may_name_a_secret_of_keys(empty: LoadedFleet) -> None:
    empty.begin()
    keep(empty, "mine", "mine")
    empty.commit({**FILES, f"{A}/export.json": naming("mine")})
    assert status(empty)["identityHash"] == MINE
    assert empty.find("root:a", "secrets", "widgets", "kcp-system") is None


def test_a_missing_secret_is_told_and_heals(empty: LoadedFleet) -> None:
    loaded = empty.begin({**FILES, f"{A}/export.json": naming("mine"), f"{B}/binding.json": widgets.binding("root:a")})
    assert empty.held(loaded) == {}
    told = empty.condition(empty.get("root:a", EXPORTS, "widgets"), "IdentityValid")
    assert (told["status"], told["reason"]) == ("False", "IdentityVerificationFailed")
    assert 'secret "default/mine" not found' in told["message"]
    assert "identityHash" not in status(empty)
    binding = empty.get("root:b", "apibindings.apis.kcp.io", "widgets")
    assert binding["status"]["phase"] == "Binding"
    assert empty.condition(binding, "APIExportValid")["reason"] == "MissingIdentityHash"

    keep(empty, "mine", "mine")
    assert status(empty)["identityHash"] == MINE
    binding = empty.get("root:b", "apibindings.apis.kcp.io", "widgets")
    assert binding["status"]["phase"] == "Bound"
    assert binding["status"]["boundResources"][0]["schema"]["identityHash"] == MINE


def test_another_key_changes_no_identity_and_is_told(offering: LoadedFleet) -> None:
    before = status(offering)["identityHash"]
    keep(offering, "mine", "mine")
    offering.commit({f"{A}/export.json": naming("mine")})
    assert status(offering)["identityHash"] == before
    told = offering.condition(offering.get("root:a", EXPORTS, "widgets"), "IdentityValid")
    assert told["status"] == "False" and "hash mismatch" in told["message"] and "mine" not in told["message"]


def test_a_secret_of_the_name_is_the_key_so_that_an_export_can_be_moved(empty: LoadedFleet) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: kcp-system}\n"
    empty.begin({f"{A}/namespace.yaml": namespace})
    keep(empty, "widgets", "mine", "kcp-system")
    loaded = empty.commit(FILES)
    assert empty.held(loaded) == {}
    assert (status(empty)["identityHash"], key_of(empty)) == (MINE, b"mine")
