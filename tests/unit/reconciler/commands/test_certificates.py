"""Certificates of a running server: renewed in time and under new names, by one process, the CA never."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from support.authorities import Authority, key_pem, pem

from apiserver.auth import pki
from apiserver.auth.keys import Keys
from reconciler.commands import addresses
from reconciler.commands.certificates import Certificates
from reconciler.commands.externalca import ExternalAuthority

URL = "https://fleet.example.org"


def contents(keys: Keys) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in keys.directory.iterdir()}


def changed(keys: Keys, before: dict[str, bytes]) -> set[str]:
    return {name for name, content in contents(keys).items() if before.get(name) != content}


def named(keys: Keys) -> set[str]:
    certificate = x509.load_pem_x509_certificate(keys.server.certificate.read_bytes())
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in found}


def test_nothing_is_written_while_all_is_good(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "keys", lambda: ["10.0.0.1"], 0)
    before = contents(certificates.keys)
    assert certificates.look(tmp_path / "kubeconfig", URL) == []
    assert contents(certificates.keys) == before
    assert not (tmp_path / "kubeconfig").exists()


def test_near_their_end_they_are_renewed_and_the_kubeconfig_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pki, "LEAF_LIFETIME", timedelta(days=20))
    certificates = Certificates(tmp_path / "keys", list, 0)
    kubeconfig = tmp_path / "admin.kubeconfig"
    certificates.write_kubeconfig(kubeconfig, URL)
    before, user = contents(certificates.keys), yaml.safe_load(kubeconfig.read_text())["users"]
    monkeypatch.undo()
    said = certificates.look(kubeconfig, URL)
    assert len(said) == 2
    assert str(kubeconfig) in said[1]
    pairs = {f"{name}.{end}" for name in ("server", "admin", "shard-admin", "syncer") for end in ("crt", "key")}
    assert changed(certificates.keys, before) == pairs
    assert yaml.safe_load(kubeconfig.read_text())["users"] != user
    assert certificates.look(kubeconfig, URL) == []


def test_copies_follow_the_servers_pair(tmp_path: Path) -> None:
    """With the CA behind the certificate, so that the copy is all that a client needs to check it."""
    hosts = ["10.0.0.1"]
    certificates = Certificates(tmp_path / "keys", lambda: hosts, 0, copies=tmp_path / "apiserver")
    for name in ("10.0.0.1", "10.0.0.2"):
        hosts[:] = [name]
        certificates.look(tmp_path / "kubeconfig", URL)
        assert name in named(certificates.keys)
        pair, ca = certificates.keys.server, certificates.keys.ca
        assert (tmp_path / "apiserver.crt").read_bytes() == pair.certificate.read_bytes() + ca.read_bytes()
        assert (tmp_path / "apiserver.key").read_bytes() == pair.key.read_bytes()
        assert (tmp_path / "apiserver.key").stat().st_mode & 0o777 == 0o600


def test_other_names_renew_the_servers_alone_and_old_ones_are_gone(tmp_path: Path) -> None:
    names = ["10.0.0.1"]
    certificates = Certificates(tmp_path / "keys", lambda: names, 0)
    before = contents(certificates.keys)
    names[:] = ["10.0.0.2", "fleet.example.org"]
    assert len(certificates.look(tmp_path / "kubeconfig", URL)) == 1
    assert changed(certificates.keys, before) == {"server.crt", "server.key"}
    assert {"10.0.0.2", "fleet.example.org", "127.0.0.1", "::1", "localhost"} <= named(certificates.keys)
    assert "10.0.0.1" not in named(certificates.keys)


def test_a_kubeconfig_that_could_not_be_written_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pki, "LEAF_LIFETIME", timedelta(days=20))
    certificates = Certificates(tmp_path / "keys", list, 0)
    kubeconfig = tmp_path / "admin.kubeconfig"
    certificates.write_kubeconfig(kubeconfig, URL)
    monkeypatch.undo()
    whole = kubeconfig.read_text()
    kubeconfig.write_text("{")
    assert "not a kubeconfig" in certificates.look(kubeconfig, URL)[0]
    kubeconfig.write_text(whole)
    assert len(certificates.look(kubeconfig, URL)) == 1
    assert kubeconfig.read_text() != whole
    assert certificates.look(kubeconfig, URL) == []


def test_what_cannot_be_renewed_is_said_once(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "keys", list, 0)
    (tmp_path / "keys" / "ca.key").rename(tmp_path / "ca.key")
    [said] = certificates.look(tmp_path / "kubeconfig", URL)
    assert "ca.key is missing" in said
    assert certificates.look(tmp_path / "kubeconfig", URL) == []
    (tmp_path / "ca.key").rename(tmp_path / "keys" / "ca.key")
    assert certificates.look(tmp_path / "kubeconfig", URL) == []


def test_the_machines_own_addresses_count_where_all_are_listened_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addresses, "machine_addresses", lambda: ["192.0.2.7", "2001:db8::7"])
    every = addresses.names("0.0.0.0", "https://fleet.example.org:8443", ["more.example.org", "192.0.2.7"])
    assert every == ["192.0.2.7", "2001:db8::7", "fleet.example.org", "more.example.org"]
    assert addresses.names("127.0.0.1", "", []) == ["127.0.0.1"]
    assert addresses.names("fe80::1%eth0", "", []) == ["fe80::1"]


def test_addresses_of_this_machine_are_such_as_others_reach() -> None:
    for each in addresses.machine_addresses():
        assert addresses.subject_name(each) == each
        assert not each.startswith(("127.", "fe80"))


@pytest.mark.parametrize(("text", "meant"), [
    ("https://Fleet.example.org", "https://Fleet.example.org"),
    ("https://fleet.example.org:8443/", "https://fleet.example.org:8443"),
    ("https://[2001:db8::1]:6443", "https://[2001:db8::1]:6443"),
])  # fmt: skip
def test_an_external_url(text: str, meant: str) -> None:
    assert addresses.external_url(text) == meant


@pytest.mark.parametrize("text", [
    "http://fleet.example.org", "fleet.example.org", "https://", "https://a b", "https://u:p@fleet.example.org",
    "https://fleet.example.org/path", "https://fleet.example.org?x", "https://fleet.example.org:99999",
])  # fmt: skip
def test_what_is_no_external_url(text: str) -> None:
    with pytest.raises(ValueError):
        addresses.external_url(text)


@pytest.mark.parametrize(("text", "meant"), [
    ("FLEET.example.org.", "fleet.example.org"), ("*.example.org", "*.example.org"), ("10.0.0.1", "10.0.0.1"),
    ("2001:DB8::1", "2001:db8::1"),
])  # fmt: skip
def test_a_name_in_a_certificate(text: str, meant: str) -> None:
    assert addresses.subject_name(text) == meant


@pytest.mark.parametrize("text", ["", "a b", "https://x", "a.*.b", "x" * 254, "fleet:6443", "bücher.example"])
def test_what_is_no_name(text: str) -> None:
    with pytest.raises(ValueError):
        addresses.subject_name(text)


def clusters(kubeconfig: Path) -> set[str]:
    """What vouches for the server, as each cluster of a kubeconfig says; "" for what the system trusts."""
    found = (each["cluster"] for each in yaml.safe_load(kubeconfig.read_text())["clusters"])
    return {base64.b64decode(each.get("certificate-authority-data", "")).decode() for each in found}


def test_whoever_ends_tls_before_the_server_is_checked_by_what_is_said(tmp_path: Path) -> None:
    certificates, kubeconfig = Certificates(tmp_path / "keys", list, 0), tmp_path / "kubeconfig"
    file, ours = tmp_path / "proxy-ca.crt", certificates.keys.ca.read_text()
    first, second = (pem(Authority(name).certificate).decode() for name in ("first", "second"))
    file.write_text(f"# the proxy's\n{first}")
    certificates.external = ExternalAuthority.of(str(file))
    certificates.write_kubeconfig(kubeconfig, URL)
    assert clusters(kubeconfig) == {first}
    assert certificates.authority(URL) == file
    file.write_text(second)  # it is another one while the server runs
    certificates.look(kubeconfig, URL)
    assert clusters(kubeconfig) == {second}
    certificates.external = ExternalAuthority.of("system")
    certificates.look(kubeconfig, URL)
    assert clusters(kubeconfig) == {""}
    assert certificates.authority(URL) is None
    certificates.external = None
    certificates.write_kubeconfig(kubeconfig, URL)
    assert clusters(kubeconfig) == {ours}


@pytest.mark.parametrize(
    "said", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_file_without_certificates_is_refused(tmp_path: Path, said: str) -> None:
    (tmp_path / "f").write_text(said)
    with pytest.raises(ValueError, match="no certificates in PEM"):
        ExternalAuthority.of(str(tmp_path / "f")).trusted()


def test_a_key_is_given_to_nobody(tmp_path: Path) -> None:
    """HAProxy's own file has both."""
    issued = Authority("a proxy's").issue("localhost")
    (tmp_path / "proxy.pem").write_bytes(pem(*issued.chain) + key_pem(issued.key))
    with pytest.raises(ValueError, match="private key"):
        ExternalAuthority.of(str(tmp_path / "proxy.pem")).trusted()
