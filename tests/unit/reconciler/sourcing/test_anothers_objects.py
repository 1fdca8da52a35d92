"""Whoever knows ids of another tenant's objects, and says that they are his, gets nothing by it: what he does not send
is not here, though this machine has it."""

from __future__ import annotations

import pytest
from support.fleetrepo import FleetRepo
from support.gitserver import GitAsked
from support.packs import Objects
from support.sourcevisits import Tenant

from reconciler.repository.objects import Repository
from reconciler.repository.sourcerefs import source_name
from reconciler.sourcing.disk import SourceDisk
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.kept import TRACKED
from reconciler.sourcing.packets import line
from reconciler.sourcing.settings import DEFAULT
from reconciler.sourcing.visit import Visit, within

TEXT = "of another tenant\n" * 20


@pytest.fixture
def theirs(tenant: Tenant) -> Repository:
    """What was fetched of b.git, for another workspace."""
    other = FleetRepo(tenant.server.folder / "b.git")
    head = other.commit({"secret.yaml": TEXT})
    name = source_name("other", "https://example.com/b.git")
    disk = SourceDisk(tenant.store, DEFAULT.together)
    visit = Visit(name, tenant.server.source("b.git"), (), (), False, within(60))
    assert visit.make(disk, DEFAULT).head == head
    return other.repo


def sends(tenant: Tenant, head: str, pack: bytes) -> None:
    """Its branch is said to be at `head` by now, and that pack is what comes of it."""
    tenant.visit()

    def send(asked: GitAsked) -> bool:
        if asked.step == "ls-refs":
            asked.reply(line(f"{head} refs/heads/main") + b"0000")
        else:
            asked.reply(line("packfile") + b"%04x\1" % (len(pack) + 5) + pack + b"0000")
        return True

    tenant.server.spoil = send


def lied(tenant: Tenant, head: str, pack: bytes) -> None:
    sends(tenant, head, pack)
    before = tenant.here.ref(TRACKED + "main")
    with pytest.raises(SourceFault) as raised:
        tenant.visit()
    assert raised.value.reason == "Unusable"
    assert tenant.here.ref(TRACKED + "main") == before and tenant.left_over() == []


def ids(theirs: Repository) -> tuple[str, str, str]:
    """Their commit, its tree and its file."""
    head = theirs.ref("refs/heads/main")
    assert head is not None
    tree = theirs.commit(head).tree
    entry = theirs.entry_at(tree, "secret.yaml")
    assert entry is not None
    return head, tree, entry.id


def test_a_head_of_theirs(tenant: Tenant, theirs: Repository) -> None:
    lied(tenant, ids(theirs)[0], Objects().pack([]))
    assert not any(tenant.here.has(each) for each in ids(theirs))


@pytest.mark.parametrize("below", ["tree", "file"])
def test_a_commit_with_what_is_theirs(tenant: Tenant, theirs: Repository, below: str) -> None:
    objects = Objects()
    _, tree, blob = ids(theirs)
    head = objects.commit(tree if below == "tree" else objects.tree([(b"100644", "mine.yaml", blob)]))
    lied(tenant, head, objects.pack(objects.made))
    assert not any(tenant.here.has(each) for each in (*ids(theirs), head))


def doubling(text: str, base: str, *parents: str) -> tuple[str, bytes]:
    """A head with a file that has a text twice, and a pack in which that is a delta against the text."""
    objects = Objects()
    blob = objects.blob(text * 2)
    head = objects.commit(objects.tree([(b"100644", "mine.yaml", blob)]), *parents)
    return head, objects.pack(objects.made.keys() - {blob}, doubled=[(base, len(text))])


def test_a_delta_against_what_is_theirs(tenant: Tenant, theirs: Repository) -> None:
    head, pack = doubling(TEXT, ids(theirs)[2])
    lied(tenant, head, pack)
    assert not any(tenant.here.has(each) for each in (*ids(theirs), head))


def test_such_a_delta_is_good_where_it_is_ones_own(tenant: Tenant) -> None:
    """So it is the base that the one before lacks."""
    repo, head = tenant.repository.repo, tenant.repository.head
    entry = repo.entry_at(repo.commit(head).tree, "app/web.yaml")
    assert entry is not None
    made, pack = doubling("one", entry.id, head)
    sends(tenant, made, pack)
    assert tenant.visit().head == made
