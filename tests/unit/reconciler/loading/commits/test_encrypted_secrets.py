"""Secrets that are written through the API and stand in git, encrypted as `.sops.yaml` says."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.commitfleet import CommitFleet
from support.loadedfleet import A, LoadedFleet
from support.sealing import AgeKey, encrypted, environment, secret

from apiserver.model.errors import StatusError
from reconciler.encryption.metadata import SelectedValues

PLAIN = "correct-horse-battery"
PLACE = f"{A}/_objects/default/secrets/pw.yaml"
KEY = AgeKey()
RULE = {"age": KEY.recipient, "encrypted_regex": "^(data|stringData)$"}


def rules(**changes: Any) -> str:
    return yaml.safe_dump({"creation_rules": [{**RULE, **changes}]})


def a_secret(**data: str) -> dict[str, Any]:
    values = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pw"}, "data": values}


@pytest.fixture
def sealing(fleet: CommitFleet) -> CommitFleet:
    """With a key for root:a, and rules for all files."""
    KEY.write(fleet.keys / "age" / "root:a")
    fleet.recheck(fleet.secrets.changed())
    fleet.commit({".sops.yaml": rules()})
    return fleet


def values(text: str) -> dict[str, str]:
    return dict(re.findall(r"^ +(\w+): (ENC\[.*?\])$", text, re.M))


def test_it_becomes_a_file_of_which_nobody_reads_the_values(sealing: CommitFleet) -> None:
    answer = sealing.create("root:a", "secrets", a_secret(password=PLAIN, user="me"))
    assert answer["data"]["password"] == base64.b64encode(PLAIN.encode()).decode()
    text = sealing.tree()[PLACE]
    assert PLAIN not in text and answer["data"]["password"] not in text
    assert "name: pw" in text and KEY.recipient in text
    assert not (sealing.keys / "secrets").exists()
    assert sealing.log()[-1] == "alice: Create secrets default/pw in root:a"
    assert sealing.get("root:a", "secrets", "pw") == answer
    sealing.recheck(["root:a"])
    assert sealing.changes() == []


def test_what_does_not_change_keeps_its_bytes(sealing: CommitFleet) -> None:
    sealing.create("root:a", "secrets", a_secret(password=PLAIN, user="me", gone="x"))
    before = sealing.tree()[PLACE]
    sealing.change("root:a", "secrets", "pw", data=a_secret(password="other", user="me", more="y")["data"])
    after = sealing.tree()[PLACE]
    was, now = values(before), values(after)
    assert now["user"] == was["user"]
    assert now["password"] != was["password"] and "more" in now and "gone" not in now
    assert re.findall(r"-----BEGIN(?s:.*)END", before) == re.findall(r"-----BEGIN(?s:.*)END", after)
    assert sealing.get("root:a", "secrets", "pw")["data"] == a_secret(password="other", user="me", more="y")["data"]
    sealing.change("root:a", "secrets", "pw", data=a_secret(password="other", user="me", more="y")["data"])
    assert sealing.tree()[PLACE] == after
    sealing.remove("root:a", "secrets", "pw")
    assert PLACE not in sealing.tree()
    assert sealing.find("root:a", "secrets", "pw") is None


def test_sops_reads_what_is_written_and_what_is_changed(sealing: CommitFleet, sops: Path, tmp_path: Path) -> None:
    def read() -> Any:
        (tmp_path / "pw.yaml").write_text(sealing.tree()[PLACE])
        done = subprocess.run(
            [sops, "decrypt", tmp_path / "pw.yaml"], capture_output=True, check=False, env=environment(KEY)
        )
        assert done.returncode == 0, done.stderr
        return yaml.safe_load(done.stdout)

    sealing.create("root:a", "secrets", a_secret(password=PLAIN, user="me"))
    assert read() == a_secret(password=PLAIN, user="me") | {"metadata": {"name": "pw", "namespace": "default"}}
    sealing.change("root:a", "secrets", "pw", data=a_secret(password="other")["data"])
    assert read()["data"] == a_secret(password="other")["data"]


def test_a_file_that_somebody_encrypted_is_changed_where_it_stands(sealing: CommitFleet) -> None:
    place = f"{A}/own.yaml"
    sealing.commit({place: "# about it\n" + encrypted(secret("pw", password=PLAIN, user="me"), KEY)})
    before = sealing.tree()[place]
    sealing.change("root:a", "secrets", "pw", data=a_secret(password="other", user="me")["data"])
    after = sealing.tree()[place]
    assert after.startswith("# about it\n")
    assert values(after)["user"] == values(before)["user"]
    assert "stringData" in after and "\ndata:" not in after
    assert sealing.get("root:a", "secrets", "pw")["data"] == a_secret(password="other", user="me")["data"]


@pytest.mark.parametrize("name", ["own.json", "two.yaml"])
def test_so_is_one_in_json_and_one_beside_others(sealing: CommitFleet, sops: Path, tmp_path: Path, name: str) -> None:
    place, said = f"{A}/{name}", secret("pw", password=PLAIN, user="me")
    text = json.dumps(said) if name == "own.json" else yaml.safe_dump_all([secret("first", password="x"), said])
    (tmp_path / ".sops.yaml").write_text(rules())
    (tmp_path / name).write_text(text)
    run = [sops, "--config", tmp_path / ".sops.yaml", "encrypt", tmp_path / name]
    before = subprocess.run(run, capture_output=True, check=True, env=environment(KEY), text=True).stdout
    sealing.commit({place: before})
    sealing.change("root:a", "secrets", "pw", data=a_secret(password="other", user="me")["data"])
    after = sealing.tree()[place]
    assert sum(line not in before.splitlines() for line in after.splitlines()) <= 1 + 2 * (1 + (name == "two.yaml"))
    (tmp_path / name).write_text(after)
    found = subprocess.run([sops, "decrypt", tmp_path / name], capture_output=True, check=True, env=environment(KEY))
    last = json.loads(found.stdout) if name == "own.json" else [*yaml.safe_load_all(found.stdout)][-1]
    assert last["stringData"] == {"password": "other", "user": "me"}
    sealing.remove("root:a", "secrets", "pw")
    assert (place in sealing.tree()) == (name == "two.yaml")
    if name == "two.yaml":
        (tmp_path / name).write_text(sealing.tree()[place])
        found = subprocess.run(
            [sops, "decrypt", tmp_path / name], capture_output=True, check=True, env=environment(KEY)
        )
        assert [*yaml.safe_load_all(found.stdout)] == [secret("first", password="x")]


def test_a_value_that_its_file_leaves_readable_is_not_written_there(sealing: CommitFleet) -> None:
    """What somebody left so stays so; what is new is not for everybody who can clone."""
    some = SelectedValues("encrypted_regex", "^password$")
    sealing.commit({f"{A}/own.yaml": encrypted(a_secret(password=PLAIN, user="me"), KEY, selection=some)})
    sealing.change("root:a", "secrets", "pw", data=a_secret(password="other", user="me")["data"])
    assert sealing.get("root:a", "secrets", "pw")["data"]["password"] == "b3RoZXI="
    with pytest.raises(StatusError, match="user would not be encrypted"):
        sealing.change("root:a", "secrets", "pw", data=a_secret(password="other", user="you")["data"])


def test_what_kubectl_keeps_in_an_annotation_is_not_written(sealing: CommitFleet) -> None:
    """All of the Secret stands there, and annotations are not encrypted."""
    last = "kubectl.kubernetes.io/last-applied-configuration"
    said = a_secret(password=PLAIN)
    said["metadata"]["annotations"] = {last: json.dumps(a_secret(password=PLAIN))}
    sealing.create("root:a", "secrets", said)
    assert last not in sealing.tree()[PLACE]
    assert last in sealing.get("root:a", "secrets", "pw")["metadata"]["annotations"]
    objects = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=sealing.repo.path, capture_output=True, check=True
    ).stdout
    assert PLAIN.encode() not in objects and base64.b64encode(PLAIN.encode()) not in objects


def test_without_rules_for_its_file_it_is_kept_in_keys_as_ever(sealing: CommitFleet) -> None:
    sealing.commit({f"{A}/.sops.yaml": rules(path_regex=r"^only/.*\.yaml$")})
    sealing.create("root:a", "secrets", a_secret(password=PLAIN))
    assert PLACE not in sealing.tree()
    assert (sealing.keys / "secrets" / "root:a" / "default.pw.yaml").exists()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"age": AgeKey().recipient}, "keys/age/root:a of the server has none of their keys"),
        ({"pgp": "ABC"}, "keys of pgp beside age"),
        ({"encrypted_regex": ""}, "would be encrypted"),
        ({"encrypted_regex": "("}, "is no expression"),
        ({"encrypted_regex": "^stringData$"}, "data.password would not be encrypted"),
        ({"age": "age1nonsense"}, "not recipients of age's"),
    ],
)
def test_rules_that_cannot_be_followed_refuse_the_write(
    sealing: CommitFleet, changes: dict[str, str], why: str
) -> None:
    sealing.commit({".sops.yaml": rules(**changes)})
    head = sealing.repo.head
    with pytest.raises(StatusError, match=why):
        sealing.create("root:a", "secrets", a_secret(password=PLAIN))
    assert sealing.repo.head == head
    assert not (sealing.keys / "secrets").exists()


def test_one_that_nobody_here_can_read_is_not_changed(sealing: CommitFleet) -> None:
    sealing.create("root:a", "secrets", a_secret(password=PLAIN))
    (sealing.keys / "age" / "root:a").unlink()
    sealing.recheck(sealing.secrets.changed())
    with pytest.raises(StatusError, match="keys/age/root:a of the server has none of their keys"):
        sealing.change("root:a", "secrets", "pw", data=a_secret(password="other")["data"])
    sealing.remove("root:a", "secrets", "pw")
    assert PLACE not in sealing.tree()


def test_one_in_plain_text_in_git_is_changed_there(sealing: CommitFleet) -> None:
    sealing.commit({f"{A}/plain.yaml": yaml.safe_dump(a_secret(password="known"))})
    with pytest.raises(StatusError, match="change it there"):
        sealing.change("root:a", "secrets", "pw", data={})


def test_a_recovery_finds_the_same(sealing: CommitFleet, another: Callable[..., LoadedFleet]) -> None:
    sealing.create("root:a", "secrets", a_secret(password=PLAIN))
    sealing.change("root:a", "secrets", "pw", data=a_secret(password="other")["data"])
    sealing.publish()
    second = another(sealing, keys=sealing.keys)
    second.load(second.recorded())
    found, here = second.get("root:a", "secrets", "pw"), sealing.get("root:a", "secrets", "pw")
    assert found["data"] == here["data"]
    assert found["metadata"]["uid"] == here["metadata"]["uid"]
