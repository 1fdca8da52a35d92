"""Files as the program sops writes them are read here, and what is written here it reads."""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.sealing import AgeKey, encrypted, environment

from reconciler.encryption.agekeys import identities
from reconciler.encryption.document import EncryptedFile

KEY = AgeKey()
IDENTITIES = {each.recipient: each for each in identities(KEY.secret)}

EVERYTHING = """\
# for all of them
apiVersion: v1
kind: Secret
metadata:
  name: a
  labels: {n: "1", y: yes, t: 2020-01-02, i: 0x1f, o: 0o17, f: 1.50, g: 1e30}
  annotations:
    d: 2001-12-14 21:59:43.10
    z: 2001-12-14t21:59:43+05:00
    no: 2001-12-14 21:59:43 +05:00
    x: |
      two
      lines
    nothing: null
    empty: ""
immutable: true
data:
  # of which nobody knows
  pw: aHVudGVy # nor of this
stringData:
  a: "plain"
  empty: ""
  list: [1, 2.5, true, x, null, 1e21, 1.0, {deep: er}]
  e: "ünï\\U0001F600"
---
apiVersion: v1
kind: Secret
metadata: {name: b}
stringData: {z: q}
"""
RULES = [
    {"encrypted_regex": "^(data|stringData)$"},
    {"encrypted_regex": "^(data|stringData)$", "mac_only_encrypted": True},
    {"unencrypted_regex": "^(metadata|kind|apiVersion)$"},
    {"encrypted_suffix": "Data"},
]


def encrypt(sops: Path, text: str, name: str, rule: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file, config = Path(folder, name), Path(folder, ".sops.yaml")
        file.write_text(text)
        config.write_text(yaml.safe_dump({"creation_rules": [{"age": KEY.recipient, **rule}]}))
        command = [sops, "--config", config, "encrypt", file]
        return subprocess.run(command, capture_output=True, check=True, env=environment(KEY)).stdout


def decrypt(sops: Path, text: str | bytes, name: str, *more: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        done = subprocess.run([sops, "decrypt", *more, file], capture_output=True, check=False, env=environment(KEY))
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout


def read(data: bytes, *, json: bool = False) -> list[dict[str, Any]]:
    return EncryptedFile(data, json=json).open(IDENTITIES).values


@pytest.mark.parametrize("rule", RULES, ids=" ".join)
def test_every_type_and_every_way_to_choose_values(sops: Path, rule: dict[str, Any]) -> None:
    first, second = read(encrypt(sops, EVERYTHING, "a.yaml", rule))
    assert first["data"] == {"pw": "aHVudGVy"}
    assert first["immutable"] is True
    said = [1, 2.5, True, "x", None, 1e21, 1, {"deep": "er"}]
    assert first["stringData"] == {"a": "plain", "empty": "", "list": said, "e": "ünï😀"}
    assert first["metadata"]["name"] == "a"
    assert second == {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "b"}, "stringData": {"z": "q"}}


def test_json(sops: Path) -> None:
    said = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "a", "n": 5, "f": 1.5, "u": 'é<>😀/\\"', "big": 12345678901234567890},
        "data": {"a": "eA==", "n": 7, "b": True, "x": None, "l": [1, "2"]},
    }
    [found] = read(encrypt(sops, json.dumps(said), "a.json", RULES[0]), json=True)
    assert found["data"] == said["data"]
    assert found["metadata"]["u"] == said["metadata"]["u"]  # type: ignore[index]


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12)
KEYS = st.text("abcXYZ019._-", max_size=8).map(lambda text: f"k{text}")
FLOATS = st.floats(-(2**53), 2**53, width=32).map(lambda number: number + 0.0)
"""Not -0.0: sops writes a file of it that it cannot read itself."""
NUMBERS = st.integers(-(2**53), 2**53) | st.booleans() | FLOATS
PLAIN = TEXTS.map(lambda text: f"t{text}") | NUMBERS
"""What stands in the file as it is: `N`, `=` and `<<` are texts to some who write YAML, and not to others."""
SCALARS = TEXTS | NUMBERS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
SECRETS = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Secret"),
        "metadata": st.fixed_dictionaries({"name": st.just("a"), "labels": st.dictionaries(KEYS, PLAIN, max_size=3)}),
        "stringData": st.dictionaries(KEYS, VALUES, max_size=4),
    }
)
FEW = settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@FEW
@given(said=SECRETS, mac_only=st.booleans())
def test_what_it_encrypts_is_read(sops: Path, said: dict[str, Any], mac_only: bool) -> None:
    rule = {**RULES[0], "mac_only_encrypted": mac_only}
    [found] = read(encrypt(sops, json.dumps(said, ensure_ascii=False), "a.yaml", rule))
    assert found["stringData"] == said["stringData"]


@FEW
@given(said=SECRETS, mac_only=st.booleans())
def test_what_is_written_it_reads(sops: Path, said: dict[str, Any], mac_only: bool) -> None:
    text = encrypted(said, KEY, mac_only_encrypted=mac_only)
    assert read(text.encode()) == [said]
    assert json.loads(decrypt(sops, text, "a.yaml", "--output-type", "json")) == said


def test_for_several_recipients(sops: Path) -> None:
    other = AgeKey()
    text = encrypted(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "eQ=="}}, other, KEY
    )
    assert EncryptedFile(text.encode(), json=False).recipients == (other.recipient, KEY.recipient)
    assert b"eQ==" in decrypt(sops, text, "a.yaml")
