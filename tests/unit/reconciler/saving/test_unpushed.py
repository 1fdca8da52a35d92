"""What only a mirror has: what of it a backup holds, what takes it in, and what does not."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.backups import backed_up, taken
from support.drills import drilled
from support.loadedfleet import A, LoadedFleet, configmap
from support.statusfiles import BRANCH

from reconciler.commands.failure import Failure
from reconciler.drilling.rehearsal import KeptAside
from reconciler.repository.bundle import bundle, heads
from reconciler.repository.chain import CONTINUES
from reconciler.repository.mirror import HISTORY, LOST_REF, SERVED_REF, STATUS_REF, Mirror
from reconciler.repository.write import move_ref
from reconciler.saving.unpushed import TakingIn, saved
from reconciler.statusbranch.lostrecord import LostRecord
from reconciler.statusbranch.writer import StatusWriter

DAYS = 86_400.0


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    """Recorded and pushed once, then recorded and not pushed."""
    made = LoadedFleet(tmp_path / "fleet")
    made.begin()
    made.publish()
    made.commit({f"{A}/app.yaml": configmap(a="2")})
    made.writer().flush()
    yield made
    made.close()


def published(fleet: LoadedFleet) -> str:
    found = fleet.repo.repo.ref(BRANCH)
    assert found is not None
    return found


def another(fleet: LoadedFleet, tmp_path: Path) -> Mirror:
    """Of a server that is to be made of the backup."""
    folder = tmp_path / "another"
    folder.mkdir()
    return Mirror(folder, str(fleet.repo.path), fleet.repo.branch, "treeplane/status")


def test_what_was_not_pushed_is_in_it_and_comes_back(fleet: LoadedFleet, tmp_path: Path) -> None:
    recorded, before = fleet.mirror.status(), published(fleet)
    assert recorded != before
    kept = fleet.mirror.keep(fleet.repo.elsewhere({"left": "behind"}), before)
    assert kept is not None
    saving = backed_up(fleet, tmp_path / "backup.age")
    found = taken(tmp_path / "backup.age", tmp_path / "taken")
    assert found.unpushed is not None
    assert saving.unpushed == found.unpushed.stat().st_size
    mirror = another(fleet, tmp_path)
    assert {STATUS_REF, kept} <= heads(mirror.repository, found.unpushed).keys()
    taking = TakingIn(mirror, found.unpushed)
    assert taking.take() == ""
    assert not taking.waits
    assert mirror.status() == mirror.lost_record() == recorded
    assert mirror.repository.ref(kept) is not None
    lost = LostRecord(mirror)
    assert lost.newest(before) == recorded
    assert lost.push(before)
    assert published(fleet) == recorded
    assert lost.newest(recorded) == recorded
    assert mirror.repository.ref(LOST_REF) is None


def test_what_was_pushed_long_ago_is_not_in_it(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.publish()
    now = time.time()
    assert saved(fleet.directory, now, tmp_path / "young"), "a source may lose what it got of late"
    repo = fleet.repo.repo
    first = repo.commit(published(fleet)).parents[0]
    move_ref(repo, BRANCH, first, published(fleet))
    mirror = another(fleet, tmp_path)
    assert TakingIn(mirror, tmp_path / "young").take() == ""
    assert mirror.lost_record() == fleet.mirror.status()
    move_ref(repo, BRANCH, mirror.lost_record(), first)
    assert not saved(fleet.directory, now + 3 * DAYS, tmp_path / "old")
    assert not (tmp_path / "old").exists()


def test_what_was_never_pushed_is_in_it_however_old_it_is(fleet: LoadedFleet, tmp_path: Path) -> None:
    move_ref(fleet.repo.repo, BRANCH, None, published(fleet))
    assert saved(fleet.directory, time.time() + 100 * DAYS, tmp_path / "old")
    mirror = another(fleet, tmp_path)
    assert TakingIn(mirror, tmp_path / "old").take() == ""
    assert LostRecord(mirror).newest(None) == fleet.mirror.status()


def test_a_history_that_ended_meanwhile_is_in_it(fleet: LoadedFleet, tmp_path: Path) -> None:
    """Without its end nobody sees that the newest record goes on from what the source has."""
    before, ended = published(fleet), fleet.mirror.status()
    assert ended is not None
    fleet.commit({f"{A}/app.yaml": configmap(a="3")})
    later = time.time() + 100 * DAYS
    StatusWriter(fleet.store, fleet.mirror, now=lambda: later).flush()
    assert fleet.mirror.repository.trailers(fleet.mirror.status() or "")[CONTINUES] == ended
    assert not fleet.mirror.repository.is_ancestor(before, fleet.mirror.status() or "")
    assert saved(fleet.directory, time.time(), tmp_path / "backup")
    mirror = another(fleet, tmp_path)
    assert TakingIn(mirror, tmp_path / "backup").take() == ""
    assert [name for name in mirror.repository.references if name.startswith(HISTORY)]
    assert LostRecord(mirror).newest(before) == fleet.mirror.status()
    assert LostRecord(mirror).push(before)


def test_what_goes_on_from_something_that_is_gone_waits(fleet: LoadedFleet, tmp_path: Path) -> None:
    assert saved(fleet.directory, time.time(), tmp_path / "backup")
    bare = LoadedFleet(tmp_path / "bare")
    bare.repo.commit({"nothing": "of it"})
    mirror = Mirror(tmp_path / "bare", str(bare.repo.path), "main", "treeplane/status")
    taking = TakingIn(mirror, tmp_path / "backup")
    assert taking.take().startswith("it goes on from commit ")
    assert taking.waits
    assert mirror.status() is mirror.lost_record() is None
    bare.close()


@pytest.mark.parametrize("content", [b"", b"no bundle", b"# v2 git bundle\n\nPACK"])
def test_what_is_no_bundle_is_told_and_changes_nothing(fleet: LoadedFleet, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    mirror = another(fleet, tmp_path)
    taking = TakingIn(mirror, tmp_path / "file")
    assert content.endswith(b"PACK") == (taking.take() == "")
    assert list(mirror.repository.references) == []


def test_only_refs_that_a_backup_has_are_taken_and_a_record_is_a_servers(fleet: LoadedFleet, tmp_path: Path) -> None:
    """Whoever has the public half of the key can make one."""
    repo = fleet.mirror.repository
    for name in ("refs/heads/main", "refs/remotes/origin/main", SERVED_REF, STATUS_REF, "refs/treeplane/keep/no-date"):
        repo.references.create(name, fleet.repo.head, force=True)
    refs = [name for name in repo.references if name != LOST_REF]
    assert bundle(repo, refs, [], tmp_path / "made")
    mirror = another(fleet, tmp_path)
    assert TakingIn(mirror, tmp_path / "made").take() == ""
    assert list(mirror.repository.references) == []
    assert mirror.status() is None


def test_a_drill_says_what_comes_back(fleet: LoadedFleet, tmp_path: Path) -> None:
    assert drilled(fleet).unpushed is None
    backed_up(fleet, tmp_path / "backup.age")
    found = taken(tmp_path / "backup.age", tmp_path / "taken")
    beside = KeptAside(found.keys, None, found.unpushed, found.fleet)
    told = drilled(fleet, beside=beside)
    assert told.same
    assert (told.unpushed and told.unpushed[1:]) == (True, 1, "")
    assert told.point.recorded == fleet.mirror.status() != published(fleet)
    assert told.point.behind == 0
    fleet.publish()
    assert drilled(fleet, beside=beside).unpushed == (fleet.mirror.status(), False, 0, "")
    with pytest.raises(Failure, match="the backup is of another fleet, somebody's"):
        drilled(fleet, beside=KeptAside(fleet="somebody's"))
