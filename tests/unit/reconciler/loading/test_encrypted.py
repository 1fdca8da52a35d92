"""Secrets that SOPS encrypted in git: read with the key of their workspace, and of no other."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.moving import move
from support.recoveries import Another, recover
from support.sealing import AgeKey, encrypted, secret
from support.widgets import export, schema

from apiserver.registry import tree
from reconciler.__main__ import main
from reconciler.commands.validate import validate_revision
from reconciler.loading import render
from reconciler.loading.trial import Trial
from reconciler.repository.objects import Repository

PLAIN = "correct-horse-battery"
FILE = f"{A}/secret.yaml"
SOURCE = "treeplane.dev/source-path"


@pytest.fixture(scope="module")
def key() -> AgeKey:
    return AgeKey()


def give(fleet: LoadedFleet, key: AgeKey | None, path: str = "root:a") -> None:
    """Writes keys/age/<path> (None: removes it) and has it looked at."""
    file = fleet.keys / "age" / path
    if key is None:
        file.unlink()
    else:
        key.write(file)
    fleet.recheck(fleet.secrets.changed())


def value(fleet: LoadedFleet, path: str = "root:a", name: str = "app") -> str | None:
    found = fleet.find(path, "secrets", name)
    return base64.b64decode(found["data"]["password"]).decode() if found else None


def applied(fleet: LoadedFleet, path: str = "root:a") -> tuple[str, str, str]:
    found = fleet.condition(fleet.workspace(path), "CommitApplied")
    return found["status"], found["reason"], found["message"]


def test_it_is_served_with_the_key_of_its_workspace(fleet: LoadedFleet, key: AgeKey) -> None:
    give(fleet, key)
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    assert value(fleet) == PLAIN
    assert fleet.get("root:a", "secrets", "app")["metadata"]["annotations"][SOURCE] == FILE
    assert applied(fleet)[:2] == ("True", "Applied")


def test_without_the_key_the_rest_goes_on_and_the_condition_says_what_to_do(fleet: LoadedFleet, key: AgeKey) -> None:
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key), f"{A}/app.yaml": configmap(a="new")})
    assert fleet.held() == {}
    assert fleet.data("root:a") == {"a": "new"}
    assert value(fleet) is None
    status, reason, text = applied(fleet)
    assert (status, reason) == ("True", "SecretsLocked")
    assert FILE in text and key.recipient in text and "keys/age/root:a" in text and "default/app" in text
    fleet.commit({f"{A}/app.yaml": configmap(a="newer")})
    assert applied(fleet)[2] == text
    assert fleet.data("root:a") == {"a": "newer"}


def test_a_key_that_comes_has_it_served_and_one_that_goes_leaves_it(fleet: LoadedFleet, key: AgeKey) -> None:
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    give(fleet, key)
    assert "+secrets/root:a/default/app" in fleet.written()
    assert value(fleet) == PLAIN
    assert applied(fleet)[1] == "Applied"
    give(fleet, None)
    assert value(fleet) == PLAIN
    assert applied(fleet)[1] == "SecretsLocked"
    fleet.commit({FILE: encrypted(secret(password="other"), key)})
    assert value(fleet) == PLAIN
    give(fleet, key)
    assert value(fleet) == "other"


def test_one_that_git_takes_away_goes_without_a_key(fleet: LoadedFleet, key: AgeKey) -> None:
    give(fleet, key)
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    give(fleet, None)
    fleet.commit({FILE: None})
    assert fleet.find("root:a", "secrets", "app") is None
    assert applied(fleet)[1] == "Applied"


def test_the_same_again_writes_nothing(fleet: LoadedFleet, key: AgeKey) -> None:
    give(fleet, key)
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    fleet.recheck(["root:a"])
    assert fleet.changes() == []
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})  # anew, with other bytes
    assert [each for each in fleet.written() if "secrets" in each] == []


def test_a_file_of_another_workspace_is_not_read_with_the_key_of_that_one(fleet: LoadedFleet, key: AgeKey) -> None:
    """Whoever may write to a workspace could else copy others' files, and read them there."""
    give(fleet, key)
    give(fleet, AgeKey(), "root:b")
    text = encrypted(secret(password=PLAIN), key)
    fleet.commit({FILE: text, f"{B}/stolen.yaml": text})
    assert value(fleet) == PLAIN
    assert value(fleet, "root:b") is None
    assert "keys/age/root:b is the key of age1" in applied(fleet, "root:b")[2]


def test_what_was_tampered_with_holds_its_workspace_and_nobody_else(fleet: LoadedFleet, key: AgeKey) -> None:
    give(fleet, key)
    good = encrypted(secret(password=PLAIN, user="a"), key)
    fleet.commit({FILE: good})
    fleet.commit({FILE: good.replace("name: app", "name: app\n  labels: {by: hand}")})
    [said] = fleet.held()["root:a"]
    assert FILE in said and "sops.mac does not fit" in said and "edit it with sops" in said
    assert PLAIN not in said
    fleet.commit({f"{B}/app.yaml": configmap(a="new")})
    assert fleet.data("root:b") == {"a": "new"}
    assert value(fleet) == PLAIN
    values = re.findall(r"ENC\[.*?\]", good)
    fleet.commit(
        {FILE: good.replace(values[0], "x").replace(values[1], values[0]).replace(": x\n", f": {values[1]}\n")}
    )
    [said] = fleet.held()["root:a"]
    assert f"{FILE}:6: cannot be decrypted: stringData.password" in said
    fleet.commit({FILE: good})
    assert fleet.held() == {}


def test_what_was_tampered_with_holds_it_when_the_key_has_gone_too(
    fleet: LoadedFleet, key: AgeKey, another: Another
) -> None:
    """Who takes the key away has nobody served with what it found out."""
    give(fleet, key)
    good = encrypted(secret(password=PLAIN), key)
    fleet.commit({FILE: good})
    bad = good.replace("name: app", "name: app\n  labels: {by: hand}")
    fleet.commit({FILE: bad, f"{A}/app.yaml": configmap(a="new")})
    assert "sops.mac does not fit" in str(fleet.held()["root:a"])
    give(fleet, None)
    [said] = fleet.held()["root:a"]
    assert said.startswith(f"{FILE}: cannot be decrypted: ") and "is not here any more" in said
    assert (value(fleet), fleet.data("root:a")) == (PLAIN, {"a": "b"})
    assert applied(fleet)[0] == "False"
    fleet.commit({f"{A}/more.yaml": configmap("more")})
    assert fleet.held()["root:a"] == [said]

    fleet.publish()
    new = recover(fleet, another)
    assert new.held() == fleet.held()
    assert new.data("root:a") == {"a": "b"}

    give(fleet, key)
    assert "sops.mac does not fit" in str(fleet.held()["root:a"])
    give(fleet, None)
    fleet.commit({FILE: encrypted(secret(password="other"), key)})
    assert fleet.held() == {}
    assert fleet.data("root:a") == {"a": "new"}
    assert applied(fleet)[1] == "SecretsLocked"


def test_one_that_never_was_served_is_held_when_the_key_has_gone_too(
    fleet: LoadedFleet, key: AgeKey, another: Another
) -> None:
    give(fleet, key, "root:new")
    bad = encrypted(secret(password=PLAIN), key).replace("name: app", "name: app\n  labels: {by: hand}")
    new = "workspaces/root/new"
    fleet.commit({f"{new}/workspace.yaml": "", f"{new}/secret.yaml": bad})
    give(fleet, None, "root:new")
    [said] = fleet.held()["root:new"]
    assert f"{new}/secret.yaml: cannot be decrypted" in said
    assert not fleet.record("root:new").served
    fleet.publish()
    again = recover(fleet, another)
    assert again.held() == fleet.held()
    assert not again.record("root:new").served


def test_a_file_that_nobody_could_read_holds_it_whatever_keys_there_are(fleet: LoadedFleet, key: AgeKey) -> None:
    good = encrypted(secret(password=PLAIN), key)
    for bad, why in (
        (re.sub(r"age:\n(.*\n)*?  lastmodified", "pgp: [{fp: x}]\n  lastmodified", good), "only age is read here"),
        (good.replace("kind: Secret", "kind: ConfigMap"), "only Secrets may be"),
        (good.partition("sops:")[0], "below sops is missing"),
        (good.replace("name: app", "name: ENC[AES256_GCM,data:eA==,iv:eA==,tag:eA==,type:str]"), "encrypted_regex"),
        (good.replace("^(data|stringData)$", "Data|name"), "nobody can tell which object it is"),
        (good.replace("^(data|stringData)$", "("), "no expression"),
    ):
        fleet.commit({FILE: bad})
        [said] = fleet.held()["root:a"]
        assert said.startswith(FILE) and why in said, said
        fleet.commit({FILE: None})
        assert fleet.held() == {}


def test_a_list_is_refused(fleet: LoadedFleet, key: AgeKey) -> None:
    fleet.commit({FILE: encrypted({"apiVersion": "v1", "kind": "List", "items": [secret(password=PLAIN)]}, key)})
    [said] = fleet.held()["root:a"]
    assert "a List cannot be encrypted" in said


def test_no_error_quotes_what_was_encrypted(fleet: LoadedFleet, key: AgeKey) -> None:
    give(fleet, key)
    value = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app"}, "data": {"password": PLAIN}}
    fleet.commit({FILE: encrypted(value, key)})
    [said] = fleet.held()["root:a"]
    assert "data" in said and "base64" in said
    assert PLAIN not in said


def test_a_key_that_others_may_read_is_not_used(fleet: LoadedFleet, key: AgeKey) -> None:
    key.write(fleet.keys / "age" / "root:a")
    (fleet.keys / "age" / "root:a").chmod(0o640)
    fleet.secrets.changed()
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    assert value(fleet) is None
    assert "chmod 600" in applied(fleet)[2]
    assert any("chmod 600" in each for each in fleet.secrets.errors())
    (fleet.keys / "age" / "root:a").chmod(0o600)
    fleet.recheck(fleet.secrets.changed())
    assert value(fleet) == PLAIN


def test_keys_that_changed_while_no_server_ran_are_noticed(fleet: LoadedFleet, key: AgeKey) -> None:
    give(fleet, key)
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    assert fleet.secrets.not_served(fleet.store) == set()
    (fleet.keys / "age" / "root:a").unlink()
    fleet.secrets.changed()
    assert fleet.secrets.not_served(fleet.store) == {"root:a"}
    fleet.recheck(["root:a"])
    assert fleet.secrets.not_served(fleet.store) == set()
    assert applied(fleet)[1] == "SecretsLocked"
    key.write(fleet.keys / "age" / "root:a")
    fleet.secrets.changed()
    assert fleet.secrets.not_served(fleet.store) == {"root:a"}


def test_several_documents_are_one_file_to_sops(fleet: LoadedFleet, key: AgeKey) -> None:
    """What is put beside an encrypted document by hand is not what was encrypted."""
    give(fleet, key)
    good = encrypted(secret(password=PLAIN), key)
    fleet.commit(
        {FILE: f"{good}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: b}}\nstringData: {{password: x}}\n"}
    )
    [said] = fleet.held()["root:a"]
    assert "is not encrypted, though it should be" in said


def test_a_trial_and_whoever_has_no_keys_decrypts_nothing(fleet: LoadedFleet, key: AgeKey, tmp_path: Path) -> None:
    """A push is judged without keys: what would be encrypted anew stays as it is."""
    give(fleet, key)
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    old, new = fleet.repo.head, fleet.repo.commit({FILE: encrypted(secret(password="other"), key)})
    fleet.mirror.refresh()
    with fleet.store.view() as view:
        tried = Trial(fleet.loader, fleet.secrets.of, fleet.keys / "identities", 60.0).run(
            view, Repository(fleet.mirror.path), old, new
        )
    assert not tried.holds
    assert "secrets" not in str(tried.changes.became) and tried.changes.locked.keys() == {"root:a"}
    assert value(fleet) == PLAIN


def test_validate_says_what_it_does_not_look_at(fleet: LoadedFleet, key: AgeKey) -> None:
    fleet.repo.commit({FILE: encrypted(secret(password=PLAIN), key)})
    checked = validate_revision(fleet.repo.path, "main")
    assert checked.problems == ()
    assert f"{FILE} is encrypted: what it says of Secret default/app is not looked at here\n" in checked.render("text")
    assert "not looked at" in checked.render("json")


def test_a_review_tells_names_of_keys_by_what_stands_in_the_files(fleet: LoadedFleet, key: AgeKey) -> None:
    good = encrypted(secret(password=PLAIN, user="x"), key)
    fleet.commit({FILE: good})
    fleet.publish()
    base = fleet.repo.head
    fleet.repo.commit({FILE: encrypted(secret(password="y", more="z"), key)})
    told = CliRunner().invoke(
        main, ["diff", "-C", str(fleet.repo.path), f"{base}..main", "-o", "json"], catch_exceptions=False
    )
    assert all(f"data.{name}" in told.output for name in ("password", "more", "user")), told.output
    assert "ENC" not in told.output and PLAIN not in told.output


def files_below(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    for folder in folders:
        for file in folder.rglob("*"):
            if file.is_file():
                yield file, file.read_bytes()


def test_what_was_encrypted_is_in_the_store_and_nowhere_else(
    fleet: LoadedFleet, key: AgeKey, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    give(fleet, key)
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    fleet.publish()
    assert value(fleet) == PLAIN
    needles = [PLAIN.encode(), base64.b64encode(PLAIN.encode())]
    assert not any(needle.decode() in caplog.text for needle in needles)
    assert not any(needle.decode() in str(tree.summary(fleet.store, "root:a")) for needle in needles)
    found = {file for file, data in files_below(fleet.directory) if any(needle in data for needle in needles)}
    assert {file.parent for file in found} == {fleet.directory / "store"}
    for repository in (fleet.repo.path, fleet.mirror.repository.path):
        objects = subprocess.run(
            ["git", "cat-file", "--batch-all-objects", "--batch"], cwd=repository, capture_output=True, check=True
        ).stdout
        assert FILE.encode().rpartition(b"/")[2] in objects
        assert not any(needle in objects for needle in needles)
    caches = [each._good._kept for each in fleet.loader.sources._files.values()] + [render._prepared._kept._kept]
    assert not any(needle.decode() in repr([*each.items()]) for each in caches for needle in needles)


def test_a_key_goes_along_with_a_workspace_that_moves(fleet: LoadedFleet, key: AgeKey) -> None:
    give(fleet, key)
    fleet.loader.steppers.carry = fleet.secrets.move
    fleet.commit({FILE: encrypted(secret(password=PLAIN), key)})
    move(fleet)
    assert value(fleet, "root:c") == PLAIN
    assert (fleet.keys / "age" / "root:c").exists() and not (fleet.keys / "age" / "root:a").exists()
    fleet.commit({"workspaces/root/c/secret.yaml": encrypted(secret(password="second"), key)})
    assert value(fleet, "root:c") == "second"
    assert fleet.secrets.changed() == set()


def test_an_export_may_have_its_identity_of_one(fleet: LoadedFleet, key: AgeKey) -> None:
    """And keeps the hash when nobody here can read the key any more; what stands in the file is never taken for it."""
    offered = json.loads(export())
    offered["spec"]["identity"] = {"secretRef": {"namespace": "default", "name": "mine"}}
    file = encrypted(secret("mine", key="mine"), key)
    fleet.commit({f"{A}/schema.json": schema(), f"{A}/export.json": json.dumps(offered), FILE: file})

    def identity() -> str:
        return str(fleet.get("root:a", "apiexports.apis.kcp.io", "widgets")["status"].get("identityHash", ""))

    assert identity() == ""
    give(fleet, key)
    assert identity() == hashlib.sha256(b"mine").hexdigest()
    give(fleet, None)
    fleet.recheck(["root:a"])
    assert identity() == hashlib.sha256(b"mine").hexdigest()
