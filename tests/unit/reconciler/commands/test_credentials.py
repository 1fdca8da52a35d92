"""`treeplane kubeconfig --user`: a certificate that the server reads as the very name, or a refusal."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from cryptography import x509
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.auth.pki import ensure_keys
from apiserver.auth.pki_clients import ClientCertificates
from reconciler.__main__ import main
from reconciler.commands.credentials import WantedUser, of_user
from reconciler.commands.failure import Failure
from reconciler.commands.servedat import ServedAt

URL = "https://fleet.example.org:6443"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a server that ran."""
    found = tmp_path_factory.mktemp("data")
    ensure_keys(found / "keys")
    ServedAt(URL, "https://127.0.0.1:6443").write(found)
    return found


def run(data: Path, *words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["kubeconfig", *words, *(("--data-dir", str(data)) if "--user" in words else ())])
    assert done.exit_code == code, done.output
    return done


def certificate(text: str) -> x509.Certificate:
    user = yaml.safe_load(text)["users"][0]["user"]
    return x509.load_pem_x509_certificate(base64.b64decode(user["client-certificate-data"]))


def read_by_server(data: Path, text: str) -> tuple[str, tuple[str, ...]]:
    peer = ClientCertificates(data / "keys/ca.crt").peer(certificate(text), [])
    assert peer.refused == ""
    return peer.user, peer.groups


def test_the_server_reads_user_and_groups(data: Path) -> None:
    before = sorted(data.rglob("*"))
    text = run(data, "--user", "ann", "--group", "devs", "--group", "ops", "--workspace", "root:shop").stdout
    assert read_by_server(data, text) == ("ann", ("devs", "ops"))
    config = yaml.safe_load(text)
    assert config["clusters"][0]["cluster"]["server"] == f"{URL}/clusters/root:shop"
    assert sorted(data.rglob("*")) == before


def test_it_trusts_what_the_server_shows_under_its_url(data: Path, tmp_path: Path) -> None:
    """A certificate that the server was given is not of the fleet's CA; under another URL that is what is known."""
    key, fleets = "certificate-authority-data", base64.b64encode((data / "keys/ca.crt").read_bytes()).decode()
    shown = tmp_path / "shown.crt"
    shown.write_bytes(b"another CA")

    def trusted(*words: str) -> str | None:
        found = yaml.safe_load(run(data, "--user", "ann", *words).stdout)["clusters"][0]["cluster"].get(key)
        return found if found is None else str(found)

    assert trusted() == fleets
    try:
        for authority, expected in ((str(shown), base64.b64encode(b"another CA").decode()), ("", None)):
            ServedAt(URL, "https://127.0.0.1:6443", authority).write(data)
            assert trusted() == expected
            assert trusted("--server", "https://other.example.org") == fleets
    finally:
        ServedAt(URL, "https://127.0.0.1:6443").write(data)


def test_the_data_directory_is_the_servers_by_the_same_variable(data: Path) -> None:
    done = CliRunner().invoke(main, ["kubeconfig", "--user", "ann"], env={"TREEPLANE_DATA_DIR": str(data)})
    assert done.exit_code == 0, done.output
    assert read_by_server(data, done.stdout) == ("ann", ())


def test_in_a_file_it_is_its_owners_alone(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "ann.kubeconfig"
    done = run(data, "--user", "ann", "-f", str(file))
    assert file.stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in done.output
    assert read_by_server(data, file.read_text()) == ("ann", ())
    assert "is there already" in run(data, "--user", "ann", "-f", str(file), code=2).output


def test_it_ends_when_it_is_to_and_with_the_ca_at_the_latest(data: Path) -> None:
    for said, ends in (("2h", timedelta(hours=2)), ("", timedelta(days=30))):
        found = certificate(run(data, "--user", "ann", *(("--for", said) if said else ())).stdout)
        assert abs(found.not_valid_after_utc - datetime.now(UTC) - ends) < timedelta(minutes=2)
    ca = x509.load_pem_x509_certificate((data / "keys/ca.crt").read_bytes())
    found = certificate(run(data, "--user", "ann", "--for", "99999d").stdout)
    assert ca.not_valid_after_utc - timedelta(minutes=1) < found.not_valid_after_utc <= ca.not_valid_after_utc
    assert "no duration" in run(data, "--user", "ann", "--for", "soon", code=2).output


@pytest.mark.parametrize("name", ["a,b", "CN=a,O=system:masters", "a/b", "a+b=c", "ä é", "a" * 64, "O=x", 'a"b\\c'])
def test_a_name_that_looks_like_more_is_that_name(data: Path, name: str) -> None:
    assert read_by_server(data, run(data, "--user", name, "--group", name).stdout) == (name, (name,))


@pytest.mark.parametrize(
    "name",
    ["", " ", " ann", "ann ", "a\x00b", "a\nb", "a\u200bb", "a" * 65, "system:masters", "System:Masters", "SYSTEM:x",
     "ｓystem:masters", "system :masters"],
)  # fmt: skip
def test_a_name_that_is_none_or_the_systems_is_refused(data: Path, name: str) -> None:
    for words in (("--user", name), ("--user", "ann", "--group", name)):
        assert run(data, *words, code=2).stdout == ""


def test_the_systems_names_take_a_word_and_a_workspaces_none_does(data: Path) -> None:
    text = run(data, "--user", "bob", "--group", "system:masters", "--admin").stdout
    assert read_by_server(data, text) == ("bob", ("system:masters",))
    borne = ("apis.kcp.io:binding:ann", "system:serviceaccount:default:x", "system:cluster:abc")
    for name in (*borne, "system:workspace:root:shop", "system:workspaces", "system:kcp:serviceaccount:a:b:c"):
        assert run(data, "--user", name, "--admin", code=2).stdout == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.text(max_size=70), st.lists(st.text(max_size=20), max_size=2))
def test_any_name_is_read_as_it_is_or_refused(data: Path, name: str, groups: list[str]) -> None:
    try:
        made = of_user(WantedUser(name, tuple(groups), "root", 3600, data_dir=data))
    except Failure:
        return
    assert read_by_server(data, made.text) == (name, tuple(groups))
    assert not name.startswith("system:")


def test_without_a_ca_it_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    said = run(tmp_path, "--user", "ann", code=3).output
    assert "has no CA" in said
    assert "on the server's machine" in said
    assert list((tmp_path / "keys").iterdir()) == []
    ensure_keys(tmp_path / "keys")
    assert "--server" in run(tmp_path, "--user", "ann", code=2).output
    assert "https://a:1/clusters/root" in run(tmp_path, "--user", "ann", "--server", "https://a:1").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("--user", "ann", "--service-account", "default/x"),
        ("root:shop", "--user", "ann"),
        ("--user", "ann", "--at", "main"),
        ("--user", "ann", "--kubeconfig", "x"),
        ("--service-account", "default/x", "--group", "g"),
        ("--service-account", "default/x", "--admin"),
        ("--service-account", "../x"),
        ("--service-account", "default/a/b"),
        ("--group", "g"),
        ("--for", "3d"),
        ("--workspace", "root"),
        ("--user", "ann", "--workspace", "../x"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(data: Path, words: tuple[Any, ...]) -> None:
    run(data, *words, code=2)
