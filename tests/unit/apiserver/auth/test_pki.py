"""Certificates: made once, kept while good, renewed when not, private."""

import errno
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from apiserver.auth import pki


def contents(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in directory.iterdir()}


def test_makes_every_pair_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    keys = pki.ensure_keys(tmp_path / "keys", ["10.1.2.3", "api.example.org"])
    first = contents(keys.directory)
    pairs = [f"{n}.{e}" for n in ("ca", "server", "admin", "shard-admin", "syncer") for e in ("crt", "key")]
    assert sorted(first) == sorted([*pairs, "service-accounts.key"])
    pki.ensure_keys(tmp_path / "keys", ["10.1.2.3", "api.example.org"])
    assert contents(keys.directory) == first


def test_files_are_private(tmp_path: Path) -> None:
    keys = pki.ensure_keys(tmp_path / "keys")
    assert stat.S_IMODE(keys.directory.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in keys.directory.iterdir()} == {0o600}


def test_a_new_host_renews_the_server_only(tmp_path: Path) -> None:
    keys = pki.ensure_keys(tmp_path)
    first = contents(keys.directory)
    pki.ensure_keys(tmp_path, ["10.9.9.9"])
    second = contents(keys.directory)
    assert {n for n in first if first[n] != second[n]} == {"server.crt", "server.key"}


def test_near_its_end_a_certificate_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pki, "LEAF_LIFETIME", timedelta(days=20))
    keys = pki.ensure_keys(tmp_path)
    first = contents(keys.directory)
    monkeypatch.undo()
    pki.ensure_keys(tmp_path)
    second = contents(keys.directory)
    assert first["ca.crt"] == second["ca.crt"]
    assert all(first[f"{n}.crt"] != second[f"{n}.crt"] for n in ("server", "admin", "shard-admin", "syncer"))


def test_a_renewed_authority_keeps_its_key_and_what_it_issued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pki, "CA_LIFETIME", timedelta(days=20))
    keys = pki.ensure_keys(tmp_path)
    first = contents(keys.directory)
    monkeypatch.undo()
    pki.ensure_keys(tmp_path)
    second = contents(keys.directory)
    assert {n for n in first if first[n] != second[n]} == {"ca.crt"}


def test_a_half_written_pair_is_issued_again(tmp_path: Path) -> None:
    keys = pki.ensure_keys(tmp_path)
    keys.admin.key.write_bytes(keys.syncer.key.read_bytes())
    keys.syncer.certificate.unlink()
    pki.ensure_keys(tmp_path)
    assert keys.admin.key.read_bytes() != keys.syncer.key.read_bytes()
    assert keys.syncer.certificate.exists()


def test_a_certificate_of_an_authority_without_key_is_an_error(tmp_path: Path) -> None:
    pki.ensure_keys(tmp_path)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(pki.KeysError, match=r"ca\.key"):
        pki.ensure_keys(tmp_path)


FOUNDATIONS = ("ca.crt", "ca.key", "service-accounts.key")


def _content(keys: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in keys.iterdir()}


@pytest.mark.parametrize("name", FOUNDATIONS)
def test_what_the_rest_rests_on_is_never_made_anew_beside_it(tmp_path: Path, name: str) -> None:
    pki.ensure_keys(tmp_path)
    (tmp_path / name).unlink()
    before = _content(tmp_path)
    with pytest.raises(pki.KeysError) as caught:
        pki.ensure_keys(tmp_path)
    said = str(caught.value)
    assert str(tmp_path / name) in said
    assert "backup" in said
    assert said.endswith(f"  touch {tmp_path / name}.new")
    assert _content(tmp_path) == before


@pytest.mark.parametrize("kept", ["server.crt", "syncer.crt", "service-accounts.key"])
def test_an_authority_that_is_lost_is_not_made_anew_beside_what_is_left(tmp_path: Path, kept: str) -> None:
    pki.ensure_keys(tmp_path)
    for each in tmp_path.iterdir():
        if each.name != kept:
            each.unlink()
    with pytest.raises(pki.KeysError, match=r"ca\.crt is missing"):
        pki.ensure_keys(tmp_path)
    assert [*_content(tmp_path)] == [kept]


@pytest.mark.parametrize("name", FOUNDATIONS)
def test_one_that_is_lost_is_made_anew_once_somebody_says_so(tmp_path: Path, name: str) -> None:
    pki.ensure_keys(tmp_path)
    before = _content(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / f"{name}.new").touch()
    pki.ensure_keys(tmp_path)
    after = _content(tmp_path)
    assert after.keys() == before.keys()
    changed = {each for each in after if after[each] != before[each]}
    if name == "ca.key":
        assert "ca.crt" in changed
        assert "server.crt" in changed
        assert "service-accounts.key" not in changed
    else:
        assert changed == {name}
    (tmp_path / name).unlink()
    with pytest.raises(pki.KeysError):  # that was said for once
        pki.ensure_keys(tmp_path)


def test_a_first_start_that_is_cut_off_anywhere_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, left = pki.write_private, 0

    def counted(path: Path, content: bytes) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "no space", str(path))
        write(path, content)

    monkeypatch.setattr(pki, "write_private", counted)
    for writes in range(11):
        keys, left = tmp_path / str(writes), writes
        with pytest.raises(OSError, match="no space"):
            pki.ensure_keys(keys)
        left = 100
        pki.ensure_keys(keys)
        assert not [*keys.glob("*.new")]


def test_a_key_of_another_authority_is_an_error(tmp_path: Path) -> None:
    pki.ensure_keys(tmp_path / "a")
    pki.ensure_keys(tmp_path / "b")
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(pki.KeysError, match="does not belong"):
        pki.ensure_keys(tmp_path / "a")


def test_a_client_certificate_for_one_more_user(tmp_path: Path) -> None:
    pki.ensure_keys(tmp_path)
    pair = pki.issue_client(tmp_path, "bob", "bob", ["devs", "ops"])
    before = pair.certificate.read_bytes()
    assert pki.issue_client(tmp_path, "bob", "bob", ["devs", "ops"]).certificate.read_bytes() == before
    assert pki.issue_client(tmp_path, "bob", "bob", ["devs"]).certificate.read_bytes() != before
