"""How much disk all sources take together."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.sourcevisits import NAME, Tenant

from reconciler.repository.sourcerefs import source_name
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.disk import SourceDisk, size
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.kept import TRACKED

ONE, TWO = source_name("one", "u"), source_name("two", "u")


def made(store: SourceStore, name: str, number: int) -> None:
    """A repository with so many bytes of objects."""
    git_dir = store.make(name).git_dir
    (git_dir / "objects" / "pack" / "some.pack").write_bytes(b"x" * number)


def test_who_would_go_beyond_what_all_may_take_is_refused_and_nobody_else(tenant: Tenant) -> None:
    """And what is here stays; once another is gone there is room."""
    head = tenant.visit().head
    made(tenant.store, ONE, 500_000)
    tenant.disk = SourceDisk(tenant.store, 1_000_000)
    tenant.repository.commit({"big": random.Random(1).randbytes(300_000)})
    with pytest.raises(SourceFault, match=r"no more room here: .* 0 MiB together: .*`treeplane up --sources-mib`") as e:
        tenant.visit()
    assert e.value.reason == "TooLarge"
    assert tenant.here.ref(TRACKED + "main") == head and tenant.left_over() == []
    assert tenant.store.names() == {NAME, ONE}
    tenant.store.remove(ONE)
    assert tenant.visit().head == tenant.repository.head


def test_what_is_here_is_looked_at_though_there_is_no_room(tenant: Tenant) -> None:
    head = tenant.visit().head
    tenant.disk = SourceDisk(tenant.store, 1)
    assert tenant.visit().head == head
    first = tenant.repository.commit({"app/web.yaml": "two"})
    with pytest.raises(SourceFault):
        tenant.visit()
    tenant.disk = SourceDisk(tenant.store, 10_000_000)
    assert tenant.visit().head == first
    tenant.disk = SourceDisk(tenant.store, 1)
    tenant.repository.reset(head)
    assert tenant.visit().head == head, "what comes of what is here takes no room"


def test_what_nobody_needs_goes_first(tenant: Tenant) -> None:
    first = tenant.repository.head
    tenant.visit()
    tenant.disk = SourceDisk(tenant.store, 1_500_000)
    for number in range(6):
        big = {"big": random.Random(number).randbytes(400_000)}
        last = tenant.repository.commit(big, parent=first)
        assert tenant.visit().head == last
    assert size(tenant.here.git_dir) < 1_500_000


def test_what_is_coming_counts_twice_and_no_longer_once_it_is_here(tmp_path: Path) -> None:
    store = SourceStore(tmp_path / "sources")
    disk = SourceDisk(store, 1000)
    made(store, ONE, 200)
    with disk.coming(ONE) as one:
        one(300)
        with disk.coming(TWO) as two:
            two(100)
            with pytest.raises(SourceFault):
                two(1)
        with disk.coming(TWO) as two:
            two(100)
        made(store, ONE, 500)
    with disk.coming(TWO) as two:
        two(250)
        with pytest.raises(SourceFault):
            two(1)
    store.remove(ONE)
    with disk.coming(TWO) as two:
        two(500)


def test_whoever_fails_leaves_no_room_taken(tmp_path: Path) -> None:
    disk = SourceDisk(SourceStore(tmp_path / "sources"), 1000)
    for _ in range(3):
        with pytest.raises(OSError, match="gone"), disk.coming(ONE) as more:
            more(400)
            raise OSError("gone")
