"""Backups: what is in one, what comes back of it, and what is refused."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import orjson
import pyrage
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.backups import IDENTITY, SECRET, backed_up, recovered, runtime
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import text

from apiserver.auth.keys import KeysError
from apiserver.model.keys import Key
from apiserver.model.tables import Table, row_key
from apiserver.storage.protocol import PutRow
from reconciler.encryption.agekeys import AgeIdentity
from reconciler.encryption.faults import UnfitFile
from reconciler.saving.archive import FACTS, VERSION, ArchiveEntry, BadBackup, write
from reconciler.saving.contents import Saved, entries
from reconciler.saving.lines import operations, pieces
from reconciler.saving.taking import take

FIRST = (FACTS, orjson.dumps({"version": VERSION}))
KEY = ("keys/ca.key", b"key")


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet")
    made.begin()
    made.publish()
    yield made
    made.close()


def made_here(fleet: LoadedFleet) -> set[Key]:
    return {key for key in fleet.everything() if key.name.startswith("made")}


def test_keys_and_what_only_the_store_had_come_back(fleet: LoadedFleet, tmp_path: Path) -> None:
    (fleet.keys / "secrets" / "root:a").mkdir(parents=True)
    (fleet.keys / "secrets" / "root:a" / "eu.yaml").write_text("a secret")
    (fleet.keys / ".half-written").write_text("no")
    (fleet.directory / "installation").write_text('{"id": "0123456789abcdef"}')
    key, file = runtime(fleet, "root:a", "made"), tmp_path / "backup.age"
    port = row_key(fleet.record("root:a").cluster, "30080")
    fleet.store.write(PutRow(Table.NODE_PORTS, port, b'["default","web"]')).result()
    saved = backed_up(fleet, file)
    assert {each for each in saved.keys if not each.startswith("identities/")} == {"ca.key", "secrets/root:a/eu.yaml"}
    late = runtime(fleet, "root:a", "made-later")

    new, said = recovered(fleet, tmp_path / "new", file)
    assert made_here(new) == {key}
    assert new.store.get(late) is None
    assert new.data("root:a", "made") == {"made": "made"}
    assert [row.key for row in new.store.scan_rows(Table.NODE_PORTS)] == [port]
    assert said == "of the backup 1 object came back that was made through the API"
    assert (new.keys / "secrets" / "root:a" / "eu.yaml").read_text() == "a secret"
    assert (new.keys / "ca.key").stat().st_mode & 0o777 == 0o600
    new.close()


def test_it_does_not_say_which_server_it_was(fleet: LoadedFleet, tmp_path: Path) -> None:
    number = "0123456789abcdef0123456789abcdef"
    (fleet.directory / "installation").write_text(f'{{"id": "{number}", "starts": [7], "fleets": []}}')
    runtime(fleet, "root:a", "made")
    file, plain = tmp_path / "backup.age", io.BytesIO()
    backed_up(fleet, file)
    with file.open("rb") as source:
        IDENTITY.decrypt(source, plain)
    assert b"made" in plain.getvalue()
    assert number.encode() not in plain.getvalue()
    assert b"installation" not in plain.getvalue()


STEPS = st.lists(st.sampled_from(["push", "write a", "write b", "backup", "publish"]), min_size=1, max_size=5)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, drops=st.booleans())
def test_a_recovery_gives_what_the_repository_gives_and_what_the_backup_had(steps: list[str], drops: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        fleet = LoadedFleet(scratch / "fleet")
        fleet.begin()
        file: Path | None = None
        written: set[Key] = set()
        had: set[Key] = set()
        for number, step in enumerate([*steps, "push"]):
            if step == "push":
                fleet.commit({f"{A}/app.yaml": configmap(a=str(number))})
            elif step.startswith("write"):
                written.add(runtime(fleet, f"root:{step[-1]}", f"made-{number}"))
            elif step == "backup":
                file, had = scratch / f"{number}.age", set(written)
                backed_up(fleet, file)
            else:
                fleet.publish()
        if drops:
            fleet.delete({f"{B}/workspace.yaml": None, f"{B}/app.yaml": None})
        fleet.publish()

        there, _ = recovered(fleet, scratch / "there", None)
        new, said = recovered(fleet, scratch / "new", file)
        clusters = {record.cluster for record in there.records()}
        back = {key for key in had if key.cluster in clusters}
        assert made_here(new) == back
        for missing in had - back:
            assert f"default/{missing.name}" in said
        assert f"{len(had - back)} did not" in said or not had - back
        assert not made_here(there)
        for key in back:
            assert new.store.get(key).value == fleet.store.get(key).value  # type: ignore[union-attr]
        others = [line for line in text(new, keys=False) if "/made-" not in line.partition(": ")[0]]
        assert others == text(there, keys=False)
        for each in (fleet, there, new):
            each.close()


def archive(*files: tuple[str, bytes]) -> io.BytesIO:
    made = io.BytesIO()
    write((ArchiveEntry(*each) for each in files), IDENTITY.recipient, made)
    return made


def refused(content: bytes, tmp_path: Path, identities: list[AgeIdentity] | None = None) -> str:
    file = tmp_path / "backup.age"
    file.write_bytes(content)
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(BadBackup) as caught:
        take(file, identities or [IDENTITY], place)
    assert not (place / "archive.tar").exists()
    return str(caught.value)


def test_another_key_opens_nothing(tmp_path: Path) -> None:
    other = AgeIdentity(str(pyrage.x25519.Identity.generate()))
    said = refused(archive(FIRST, KEY).getvalue(), tmp_path, [other])
    assert said == f"it is not encrypted for {other.recipient}, is cut off, or was changed"
    assert [*(tmp_path / "place" / "keys").iterdir()] == []


def test_one_of_several_keys_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "backup.age"
    file.write_bytes(archive(FIRST, KEY).getvalue())
    (tmp_path / "place").mkdir()
    other = AgeIdentity(str(pyrage.x25519.Identity.generate()))
    assert (take(file, [other, IDENTITY], tmp_path / "place").keys / "ca.key").read_bytes() == b"key"


@settings(max_examples=20, deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7), cut=st.booleans())
def test_a_flipped_bit_and_a_lost_end_are_found_before_anything_is_written(share: float, bit: int, cut: bool) -> None:
    whole = archive(FIRST, KEY, ("keys/large", b"x" * 150_000)).getvalue()
    at = int(share * len(whole))  # its length is another each time
    changed = whole[:at] + bytes([whole[at] ^ 1 << bit]) + whole[at + 1 :]
    broken = whole[:at] if cut else changed
    with tempfile.TemporaryDirectory() as folder:
        refused(broken, Path(folder))
        assert [*(Path(folder) / "place" / "keys").iterdir()] == []


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("keys/../../etc/passwd", "leads elsewhere"),
        ("/keys/x", "no file that a backup has"),
        ("keys/./x", "no file that a backup has"),
        ("keys//x", "no file that a backup has"),
        ("keys", "no file that a backup has"),
        ("installation", "no file that a backup has"),
        ("store/../installation", "leads elsewhere"),
        ("keys/.ssh/x", "leads elsewhere"),
        ("keys/ca.key", "twice"),
    ],
)
def test_names_that_lead_elsewhere(tmp_path: Path, name: str, what: str) -> None:
    assert what in refused(archive(FIRST, KEY, (name, b"x")).getvalue(), tmp_path)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_what_is_no_regular_file(tmp_path: Path, kind: bytes) -> None:
    plain, made = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as tar:
        facts = tarfile.TarInfo(FACTS)
        facts.size = len(FIRST[1])
        tar.addfile(facts, io.BytesIO(FIRST[1]))
        link = tarfile.TarInfo("keys/ca.key")
        link.type, link.linkname = kind, "/etc/shadow"
        tar.addfile(link)
    plain.seek(0)
    pyrage.encrypt_io(plain, made, [pyrage.x25519.Recipient.from_str(IDENTITY.recipient)])
    assert "'keys/ca.key', which is no file" in refused(made.getvalue(), tmp_path)


def test_another_version_is_refused_by_name(tmp_path: Path) -> None:
    said = refused(archive((FACTS, orjson.dumps({"version": VERSION + 1})), KEY).getvalue(), tmp_path)
    assert said.startswith(f"it is of version {VERSION + 1}, and this program reads {VERSION}")


@pytest.mark.parametrize(
    ("files", "what"),
    [
        ((KEY,), "begins with 'keys/ca.key'"),
        ((FIRST,), "has no keys/ca.key"),
        (((FACTS, b"[]"), KEY), "does not read"),
        ((FIRST, KEY, ("store/000001.jsonl", b"{}\n")), "does not read"),
        ((FIRST, KEY, ("store/000001.jsonl", b'{"table":"roles","row":"a","bytes":""}\n')), "does not read"),
        ((FIRST, KEY, ("store/000001.jsonl", b'{"table":"fleet","row":"record","bytes":""}\n')), "does not read"),
    ],
)
def test_what_is_no_backup(tmp_path: Path, files: tuple[tuple[str, bytes], ...], what: str) -> None:
    assert what in refused(archive(*files).getvalue(), tmp_path)


def test_what_fails_while_it_is_written_is_told_as_that(tmp_path: Path) -> None:
    def broken() -> Iterator[ArchiveEntry]:
        yield ArchiveEntry(*FIRST)
        raise KeysError("lost")

    with pytest.raises(KeysError, match="lost"):
        write(broken(), IDENTITY.recipient, io.BytesIO())
    with pytest.raises(UnfitFile) as caught:
        write(iter([ArchiveEntry(*FIRST)]), SECRET, io.BytesIO())
    assert SECRET not in str(caught.value)

    class Full(io.BytesIO):
        def write(self, _: object) -> int:  # type: ignore[override]
            raise OSError(28, "full")

    large = [ArchiveEntry(*FIRST), *(ArchiveEntry(f"keys/{n}", b"x" * 300_000) for n in range(5))]
    with pytest.raises(OSError, match="full"):
        write(iter(large), IDENTITY.recipient, Full())


def test_a_directory_without_keys_is_none_of_a_server(tmp_path: Path) -> None:
    with pytest.raises(KeysError, match=r"has no ca\.key"):
        [*entries(tmp_path, tmp_path / "keys", 0.0, Saved())]


def test_operations_are_written_in_pieces_and_read_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    from reconciler.saving import lines

    monkeypatch.setattr(lines, "_PIECE", 200)
    rows = [PutRow(Table.NODE_PORTS, f"a\0{n}", bytes([n, 255])) for n in range(20)]
    made = [*pieces(rows)]
    assert len(made) > 2
    assert [op for each in made for op in operations(each)] == rows
