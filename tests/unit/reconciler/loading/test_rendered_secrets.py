"""Encrypted Secrets that come through kustomize are opened, as long as nobody changed what was encrypted."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from support.fakerenders import FakeRenders
from support.loadedfleet import A, LoadedFleet
from support.recoveries import assert_same, recover
from support.sealing import AgeKey, encrypted, secret

KEY, OTHER = AgeKey(), AgeKey()
K = f"{A}/k"
MARKER, FILE = f"{K}/kustomization.yaml", f"{K}/secret.yaml"
VALUES = {"zeta": "one", "alpha": "two", "multi": "a\nb"}


def sealed(only: bool = True, *keys: AgeKey, name: str = "app") -> str:
    return encrypted(secret(name, **VALUES), *(keys or (KEY,)), mac_only_encrypted=only)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet", renders=FakeRenders())
    KEY.write(made.keys / "age" / "root:a")
    made.secrets.changed()
    made.begin()
    yield made
    made.close()


def served(fleet: LoadedFleet, name: str = "k-app") -> dict[str, str]:
    found = fleet.get("root:a", "secrets", name)["data"]
    return {field: base64.b64decode(value).decode() for field, value in found.items()}


def test_it_is_opened_whatever_kustomize_changed_around_it(fleet: LoadedFleet) -> None:
    fleet.commit({MARKER: "namePrefix: k-\nresources: [secret.yaml]\n", FILE: sealed()})
    assert fleet.held() == {}
    assert served(fleet) == VALUES
    assert fleet.get("root:a", "secrets", "k-app")["metadata"]["labels"] == {"stamp": "1"}
    assert "ENC[" not in str(fleet.get("root:a", "secrets", "k-app"))


def test_the_order_of_names_is_no_change(fleet: LoadedFleet) -> None:
    """As kustomize writes it: in an output by names, among other objects."""
    text = sealed()
    found = yaml.safe_load(text)
    ordered = {**found, "stringData": dict(sorted(found["stringData"].items()))}
    output = yaml.safe_dump_all([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}, ordered])
    fleet.commit({MARKER: yaml.safe_dump({"raw": output}), FILE: text})
    assert fleet.held() == {}
    assert served(fleet, "app") == VALUES


def test_values_that_were_changed_are_damaged(fleet: LoadedFleet) -> None:
    found = yaml.safe_load(sealed())
    del found["stringData"]["alpha"]
    fleet.commit({MARKER: yaml.safe_dump({"raw": yaml.safe_dump(found)}), FILE: sealed()})
    [error] = fleet.held()["root:a"]
    assert error.startswith(f"{MARKER}: ")
    assert "sops.mac does not fit" in error


def test_one_that_counts_all_of_it_says_what_to_do(fleet: LoadedFleet) -> None:
    fleet.commit({MARKER: "resources: [secret.yaml]\n", FILE: sealed(False)})
    [error] = fleet.held()["root:a"]
    assert error.startswith(
        f"{MARKER}: what comes of it is no manifest: Secret app: counts in its MAC what is not encrypted"
    )
    assert "mac_only_encrypted: true" in error


def test_for_others_it_is_locked_and_holds_nobody(fleet: LoadedFleet) -> None:
    fleet.commit({MARKER: "resources: [secret.yaml]\n", FILE: sealed(True, OTHER)})
    assert fleet.held() == {}
    assert fleet.find("root:a", "secrets", "app") is None
    assert MARKER in str(fleet.record("root:a").locked)


def test_a_recovery_opens_it_again(fleet: LoadedFleet, another: Callable[..., LoadedFleet]) -> None:
    fleet.commit({MARKER: "resources: [secret.yaml]\n", FILE: sealed()})
    fleet.publish()
    new = recover(fleet, another, share=True)
    new.recheck(new.secrets.not_served(new.store))
    assert served(new, "app") == VALUES
    assert_same(new, fleet)
