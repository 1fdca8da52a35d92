"""The certificate that `up` was given: what clients trust then, what is said of it, and when nothing starts."""

from __future__ import annotations

import base64
import ssl
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from support.authorities import Authority, Issued, pem
from support.fleetrepo import plain_fleet

from apiserver.auth import pki_serving
from apiserver.auth.keys import Pair
from reconciler import __main__ as program
from reconciler.commands import preparing as command
from reconciler.commands import shown, words
from reconciler.commands.certificates import Certificates
from reconciler.commands.shown import ShownCertificate

CA = Authority("some CA")
BETWEEN = Authority("between", CA)
URL = "https://api.example.org:6443"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pki_serving, "_EVERY", 0.0)


@pytest.fixture
def issued() -> Issued:
    return BETWEEN.issue("api.example.org")


def certificates(tmp_path: Path, issued: Issued, *more: Any) -> Certificates:
    found = Certificates(tmp_path / "keys", lambda: ["api.example.org", "fleet.internal"], 60)
    files = Pair(*issued.put(tmp_path / "given", *more))
    found.shown = ShownCertificate(files, found.keys, tmp_path / "serving-ca.crt")
    return found


def trusted(kubeconfig: Path) -> bytes | None:
    """What the administrators' kubeconfig has as its CA."""
    found = {c["cluster"].get("certificate-authority-data") for c in yaml.safe_load(kubeconfig.read_text())["clusters"]}
    [one] = found
    return None if one is None else base64.b64decode(one)


def test_a_root_in_the_file_is_trusted(tmp_path: Path, issued: Issued) -> None:
    found = certificates(tmp_path, issued, CA.certificate)
    assert found.write_kubeconfig(tmp_path / "config", URL) == []
    assert trusted(tmp_path / "config") == pem(CA.certificate)
    assert found.authority(URL) == tmp_path / "serving-ca.crt"
    assert (tmp_path / "serving-ca.crt").read_bytes() == pem(CA.certificate)


def test_a_root_beside_the_file_is_trusted(tmp_path: Path, issued: Issued) -> None:
    """As cert-manager has it."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "ca.crt").write_bytes(pem(CA.certificate))
    found = certificates(tmp_path, issued)
    assert found.write_kubeconfig(tmp_path / "config", URL) == []
    assert trusted(tmp_path / "config") == pem(CA.certificate)


def test_a_public_ca_is_named_nowhere(tmp_path: Path, issued: Issued, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is the fleet's, which would be the only one that counts then."""
    (tmp_path / "system.pem").write_bytes(pem(CA.certificate))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "ca.crt").write_bytes(b"")  # cert-manager's, of a public CA
    found = certificates(tmp_path, issued)
    assert found.write_kubeconfig(tmp_path / "config", URL) == []
    assert trusted(tmp_path / "config") is None
    assert found.authority(URL) is None
    assert "sslCAInfo" not in words.clone_line(URL, found.keys, found.authority(URL))


def test_of_a_ca_that_nobody_knows_the_last_in_the_file_is_trusted(tmp_path: Path, issued: Issued) -> None:
    """kubectl and our plugin take it, and it is said what others need."""
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "ca.crt").write_bytes(pem(Authority("another").certificate))
    [note] = certificates(tmp_path, issued).write_kubeconfig(tmp_path / "config", URL)
    assert "put the CA's certificate there, or beside it as ca.crt" in note
    assert trusted(tmp_path / "config") == pem(BETWEEN.certificate)


def test_where_it_does_not_name_the_server_the_fleets_ca_is_trusted(tmp_path: Path, issued: Issued) -> None:
    found = certificates(tmp_path, issued, CA.certificate)
    ca = found.keys.ca.read_bytes()
    assert found.write_kubeconfig(tmp_path / "config", "https://127.0.0.1:6443") == []
    assert trusted(tmp_path / "config") == ca
    [note] = found.write_kubeconfig(tmp_path / "config", "https://fleet.internal")
    assert note.endswith("does not name fleet.internal: clients there are shown the server's own certificate")
    assert trusted(tmp_path / "config") == ca


def test_another_certificate_is_said_and_the_kubeconfig_follows(tmp_path: Path, issued: Issued) -> None:
    found = certificates(tmp_path, issued, CA.certificate)
    found.write_kubeconfig(tmp_path / "config", URL)
    assert found.look(tmp_path / "config", URL) == []
    other = Authority("another")
    other.issue("api.example.org").put(tmp_path / "given", other.certificate)
    said = found.look(tmp_path / "config", URL)
    assert len(said) == 1
    assert said[0].startswith(f"{tmp_path / 'given' / 'tls.crt'} was read again: its certificate counts to 20")
    assert trusted(tmp_path / "config") == pem(other.certificate)
    assert found.look(tmp_path / "config", URL) == []


def test_what_does_not_fit_is_said_once(tmp_path: Path, issued: Issued) -> None:
    """And not what is only being written."""
    found = certificates(tmp_path, issued, CA.certificate)
    key = tmp_path / "given" / "tls.key"
    key.write_bytes(b"half")
    looks = [found.look(tmp_path / "config", URL) for _ in range(5)]
    said = f"{key} is not a private key in PEM, or not whole; the certificate that was read before counts on"
    assert looks == [[], [said], [], [], []]
    key.unlink()
    looks = [found.look(tmp_path / "config", URL) for _ in range(3)]
    assert looks == [[], [f"{key}: No such file or directory; the certificate that was read before counts on"], []]
    issued.put(tmp_path / "given", CA.certificate)
    assert found.look(tmp_path / "config", URL) == []


def test_its_end_is_said_once(tmp_path: Path, issued: Issued, monkeypatch: pytest.MonkeyPatch) -> None:
    found = certificates(tmp_path, issued)
    assert found.shown is not None

    class Later:
        @staticmethod
        def now(zone: Any) -> Any:
            return issued.chain[0].not_valid_after_utc.astimezone(zone)

    monkeypatch.setattr(shown, "datetime", Later)
    assert found.look(tmp_path / "config", URL) == [
        f"the certificate in {tmp_path / 'given' / 'tls.crt'} has ended: clients refuse it"
    ]
    assert found.look(tmp_path / "config", URL) == []


class _Listener:
    def getsockname(self) -> tuple[str, int]:
        return "127.0.0.1", 1

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("given", "missing"), [("cert", "private-key"), ("private-key", "cert")])
def test_one_without_the_other_is_refused(
    tmp_path: Path, issued: Issued, given: str, missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "listening", lambda *_: _Listener())
    certificate, key = issued.put(tmp_path / "given")
    file = certificate if given == "cert" else key
    options = [f"--data-dir={tmp_path / 'data'}", "--listen=127.0.0.1:0", f"--tls-{given}-file={file}"]
    answer = CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), *options])
    assert answer.exit_code == 2
    assert f"--tls-{given}-file is given without --tls-{missing}-file" in answer.output


def test_what_does_not_fit_at_the_start_is_a_sentence(
    tmp_path: Path, issued: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("it runs")

    monkeypatch.setattr(command, "listening", lambda *_: _Listener())
    monkeypatch.setattr(command, "resolve", never)
    certificate, key = issued.put(tmp_path / "given")
    key.write_bytes(b"half")
    options = [f"--data-dir={tmp_path / 'data'}", "--listen=127.0.0.1:0"]
    options += [f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}"]
    answer = CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), *options])
    assert answer.exit_code == 3
    assert answer.output == (
        f"Error: --tls-cert-file: {key} is not a private key in PEM, or not whole\n"
        "mend the files, or start without them\n"
    )


def test_a_client_of_the_kubeconfig_is_let_in_with_python_too(tmp_path: Path, issued: Issued) -> None:
    """Whose `ssl` wants a root unless it is told otherwise."""
    found = certificates(tmp_path, issued, CA.certificate)
    found.write_kubeconfig(tmp_path / "config", URL)
    context = ssl.create_default_context(cadata=(trusted(tmp_path / "config") or b"").decode())
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = context.wrap_bio(back, there, server_hostname="api.example.org")
    assert found.shown is not None
    server = found.shown._tls.at("192.0.2.1").wrap_bio(there, back)
    for _ in range(5):
        for side in (talk, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert talk.getpeercert()
