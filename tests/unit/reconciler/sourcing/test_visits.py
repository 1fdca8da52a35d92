"""One visit to a tenant's repository: what comes of it is whole, bounded and apart from everything else."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo
from support.sourcevisits import Tenant

from reconciler.repository import packing
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.sourcerefs import SourceCredentials
from reconciler.sourcing.disk import size
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.kept import KEPT, TRACKED
from reconciler.sourcing.settings import DEFAULT, FollowSettings, SourceBounds
from reconciler.sourcing.taking import Taking
from reconciler.sourcing.visit import within


def text(tenant: Tenant, commit: str, path: str = "app/web.yaml") -> str:
    entry = tenant.here.entry_at(tenant.here.commit(commit).tree, path)
    assert entry is not None
    return tenant.here.blob(entry.id).decode()


def noise(number: int) -> dict[str, bytes]:
    chance = random.Random(number)
    return {f"{n}.bin": chance.randbytes(40_000) for n in range(10)}


@pytest.mark.parametrize("old", [False, True])
def test_what_is_new_comes_and_what_is_not_is_not_asked_for(tenant: Tenant, old: bool) -> None:
    tenant.server.old = old
    asking = ["refs"] if old else ["refs", "ls-refs"]
    assert tenant.visit().head == tenant.repository.head
    assert text(tenant, tenant.repository.head) == "one"
    assert tenant.server.steps == [*asking, "fetch"]
    tenant.server.asked.clear()
    assert tenant.visit().head == tenant.repository.head
    assert tenant.server.steps == asking[-1:], "one request, for a branch that did not move"
    tenant.server.asked.clear()
    for number in range(3):
        tenant.repository.commit({"app/web.yaml": f"two {number}"})
    assert tenant.visit().head == tenant.repository.head
    assert [text(tenant, commit) for commit in tenant.repository.commits] == ["one", "two 0", "two 1", "two 2"]
    assert tenant.left_over() == []


def test_only_what_is_new_is_sent(tenant: Tenant) -> None:
    tenant.repository.commit({f"big/{number}.yaml": f"{number}" * 500 for number in range(400)})
    tenant.visit()
    before = size(tenant.here.git_dir)
    tenant.repository.commit({"app/web.yaml": "two"})
    tenant.visit()
    assert size(tenant.here.git_dir) - before < 4096


@pytest.mark.parametrize("old", [False, True])
def test_a_branch_that_was_rewritten_meets_what_is_here(tenant: Tenant, old: bool) -> None:
    tenant.server.old = old
    first = tenant.repository.commit({f"big/{number}.yaml": f"{number}" * 500 for number in range(400)})
    tenant.repository.commit({"app/web.yaml": "two"})
    left = tenant.visit().head
    before = size(tenant.here.git_dir)
    tenant.repository.commit({"app/web.yaml": "other"}, parent=first)
    found = tenant.visit()
    assert (found.head, found.left) == (tenant.repository.head, {left})
    assert size(tenant.here.git_dir) - before < 4096
    assert text(tenant, left) == "two", "whoever serves it reads it still"


def test_a_branch_that_goes_back_and_comes_again_ends_where_it_began(tenant: Tenant) -> None:
    first = tenant.repository.head
    second = tenant.repository.commit({"app/web.yaml": "two"})
    tenant.visit()
    packs = sorted((tenant.here.git_dir / "objects" / "pack").iterdir())
    tenant.server.asked.clear()
    for head, left in ((first, {second}), (second, set())):
        tenant.repository.reset(head)
        found = tenant.visit()
        assert (found.head, found.left) == (head, left)
    assert tenant.server.steps == ["ls-refs", "ls-refs"], "all of it was here, and found whole"
    assert sorted((tenant.here.git_dir / "objects" / "pack").iterdir()) == packs


def test_another_branch_may_be_called_as_a_directory_of_the_first_ones(tenant: Tenant) -> None:
    tenant.visit()
    first = tenant.repository.head
    tenant.repository.repo.references.create("refs/heads/next/one", first)
    tenant.repository.repo.references.create("refs/heads/next/one-more", first)
    assert tenant.visit(tenant.server.source("a.git", "next/one")).head == first
    tenant.repository.repo.references.delete("refs/heads/next/one")
    tenant.repository.repo.references.create("refs/heads/next/one/two", first)
    with pytest.raises(SourceFault, match="has no branch next/one") as gone:
        tenant.visit(tenant.server.source("a.git", "next/one"))
    assert gone.value.reason == "BranchNotFound"
    assert tenant.visit(tenant.server.source("a.git", "next/one/two")).head == first
    assert [*tenant.here.references] == [f"{TRACKED}next/one/two"]


def test_a_branch_that_is_gone_takes_nothing_with_it(tenant: Tenant) -> None:
    head = tenant.visit().head
    tenant.repository.repo.references.delete(tenant.repository.ref)
    with pytest.raises(SourceFault):
        tenant.visit()
    assert tenant.here.ref(TRACKED + "main") == head
    assert text(tenant, head) == "one"


def test_no_other_ref_and_no_tag_comes(tenant: Tenant) -> None:
    tenant.repository.repo.references.create("refs/tags/v1", tenant.repository.head)
    tenant.repository.repo.references.create("refs/replace/" + tenant.repository.head, tenant.repository.head)
    tenant.visit()
    assert [*tenant.here.references] == [TRACKED + "main"]


def test_two_sources_share_no_object(tenant: Tenant, tmp_path: Path) -> None:
    head = tenant.visit().head
    other = tenant.store.make("s" + "b" * 21)
    assert not other.has(head)
    assert not (other.git_dir / "objects" / "info" / "alternates").exists()


def test_what_is_kept_stays_when_room_is_made_and_what_nobody_needs_goes(tenant: Tenant) -> None:
    """A tenant who forces big things onto a branch again and again fills his own repository, and nothing else."""
    first = tenant.repository.head
    tenant.visit()
    bounds = SourceBounds(disk=1_500_000)
    settings = FollowSettings(bounds=bounds)
    served = tenant.repository.commit(noise(0), parent=first)
    tenant.visit(settings=settings)
    lost = list[str]()
    for number in range(1, 7):
        lost.append(tenant.repository.commit(noise(number), parent=first))
        tenant.visit(settings=settings, keep=frozenset({served}))
    assert size(tenant.here.git_dir) <= bounds.disk
    assert tenant.here.has(served)
    assert Taking(tenant.here, within(60), bounds).is_whole(served)
    assert not tenant.here.has(lost[0])
    assert set(tenant.here.references) == {TRACKED + "main", KEPT + served, KEPT + lost[-2]}


@pytest.mark.parametrize("old", [False, True])
def test_what_is_served_and_was_lost_is_asked_for_by_its_id_once(tenant: Tenant, old: bool) -> None:
    """This machine lost its disk, and the branch was rewritten meanwhile. A server of the first version refuses."""
    tenant.server.old = old
    served, first = tenant.repository.commit({"app/web.yaml": "served"}), tenant.repository.commits[0]
    tenant.repository.commit({"app/web.yaml": "rewritten"}, parent=first)
    gone = "1" * 40
    found = tenant.visit(keep=frozenset({served, gone, first}))
    assert found.head == tenant.repository.head
    assert found.refused == ({served, gone} if old else {gone})
    kept = {KEPT + first} if old else {KEPT + first, KEPT + served}
    assert set(tenant.here.references) == {TRACKED + "main"} | kept
    if not old:
        assert text(tenant, served) == "served"
    tenant.server.asked.clear()
    tenant.visit(keep=frozenset({served, gone, first}))
    assert "fetch" not in tenant.server.steps


def test_what_is_larger_than_a_source_may_be_is_refused_and_leaves_nothing(tenant: Tenant) -> None:
    head = tenant.visit().head
    tenant.repository.commit({"big": random.Random(1).randbytes(600_000)})
    small = FollowSettings(bounds=SourceBounds(disk=300_000))
    with pytest.raises(SourceFault, match=r"needs more than 0 MiB.*--source-mib") as large:
        tenant.visit(settings=small)
    assert large.value.reason == "TooLarge"
    assert tenant.here.ref(TRACKED + "main") == head
    assert tenant.left_over() == [] and size(tenant.here.git_dir) < 300_000
    assert tenant.visit().head == tenant.repository.head


def test_more_objects_than_may_come_are_refused_before_git_makes_room_for_them(tenant: Tenant) -> None:
    tenant.repository.commit({f"{number}.yaml": f"{number}" for number in range(50)})
    with pytest.raises(SourceFault, match="more than 20 objects"):
        tenant.visit(settings=FollowSettings(bounds=SourceBounds(objects=20)))
    assert tenant.left_over() == []


def test_an_object_that_is_large_once_it_is_unpacked_is_refused(tenant: Tenant) -> None:
    tenant.repository.commit({"zeros": b"\0" * 40_000_000})
    with pytest.raises(SourceFault) as refused:
        tenant.visit(settings=FollowSettings(bounds=SourceBounds(largest=10_000_000)))
    assert refused.value.reason == "Unusable"
    assert tenant.left_over() == []


def test_packs_become_few(tenant: Tenant) -> None:
    settings = FollowSettings(packs=3)
    for number in range(8):
        tenant.repository.commit({"app/web.yaml": f"{number}"})
        tenant.visit(settings=settings)
    assert packing.load(tenant.here.git_dir).packs <= 4
    assert [text(tenant, commit) for commit in tenant.repository.commits[1:]] == [*"01234567"]


def test_where_the_branch_stands_is_told_though_nothing_can_be_packed(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ref has moved: a fault would have what was left forgotten."""

    def fail(_: Path) -> None:
        raise RepositoryUnreadable("the disk is full")

    monkeypatch.setattr(packing, "pack", fail)
    first = tenant.repository.head
    two = tenant.repository.commit({"app/web.yaml": "two"})
    tenant.visit(settings=FollowSettings(packs=0))
    three = tenant.repository.commit({"app/web.yaml": "three"}, parent=first)
    found = tenant.visit(settings=FollowSettings(packs=0))
    assert (found.head, found.left) == (three, {two})


def test_a_repository_that_lost_its_objects_is_filled_again(tenant: Tenant) -> None:
    """It is a cache: a disk that lost part of it costs a fetch."""
    head = tenant.visit().head
    for path in (tenant.here.git_dir / "objects" / "pack").iterdir():
        path.unlink()
    tenant.store.let_go()
    tenant.here.let_go()
    fresh = type(tenant.store)(tenant.store.directory)
    tenant.store = fresh
    assert tenant.visit().head == head
    assert text(tenant, head) == "one"


@pytest.mark.parametrize(
    ("credentials", "hint"),
    [
        (SourceCredentials(), "name a Secret.* check the URL"),
        (SourceCredentials("u", "wrong"), "does not take the credentials of the Secret"),
        (SourceCredentials(token="wrong"), "does not take the credentials of the Secret"),
    ],
)
def test_credentials_that_are_missing_are_told_from_those_that_are_wrong(
    tenant: Tenant, credentials: SourceCredentials, hint: str
) -> None:
    tenant.server.password = "right"
    with pytest.raises(SourceFault, match=f"answers with 401: .*{hint}") as refused:
        tenant.visit(tenant.server.source("a.git", credentials=credentials))
    assert refused.value.reason == "Unauthorized"
    assert tenant.store.names() == set()
    right = tenant.server.source("a.git", credentials=SourceCredentials("u", "right"))
    assert tenant.visit(right).head == tenant.repository.head


def test_a_repository_that_is_not_there(tenant: Tenant) -> None:
    with pytest.raises(SourceFault, match="answers with 404") as refused:
        tenant.visit(tenant.server.source("b.git"))
    assert refused.value.reason == "NotFound"


def test_an_empty_repository_has_no_branch(tenant: Tenant) -> None:
    for old in (False, True):
        tenant.server.old = old
        FleetRepo(tenant.server.folder / f"empty{old}.git")
        with pytest.raises(SourceFault, match="has no branch main"):
            tenant.visit(tenant.server.source(f"empty{old}.git"))


def test_ids_of_another_format_are_refused_by_name(tenant: Tenant) -> None:
    path = tenant.server.folder / "long.git"
    subprocess.run(["git", "init", "-q", "-b", "main", "--object-format=sha256", str(path)], check=True)
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "-C", str(path), *who, "commit", "-q", "--allow-empty", "-m", "one"], check=True)
    (path / ".git").rename(tenant.server.folder / "bare.git")
    for old in (False, True):
        tenant.server.old = old
        with pytest.raises(SourceFault, match="SHA-256 ids are not supported"):
            tenant.visit(tenant.server.source("bare.git"))


def test_a_shallow_clone_is_refused_by_name(tenant: Tenant) -> None:
    tenant.repository.commit({"app/web.yaml": "two"})
    path = tenant.server.folder / "shallow.git"
    source = f"file://{tenant.repository.path}"
    subprocess.run(["git", "clone", "-q", "--bare", "--depth=1", source, str(path)], check=True)
    for old in (False, True):
        tenant.server.old, tenant.second = old, False
        with pytest.raises(SourceFault, match=r"is a shallow clone: .*--unshallow"):
            tenant.visit(tenant.server.source("shallow.git"))


# -- which way out ----------------------------------------------------------------------------------------------------


def test_an_address_inside_is_connected_to_for_trusted_ones_alone(tenant: Tenant) -> None:
    inside = replace(tenant.server.source("a.git"), trusted=False, remedy="treeplane up --trust-sources root:a")
    with pytest.raises(SourceFault, match=r"127\.0\.0\.1 is not allowed.*--trust-sources root:a") as refused:
        tenant.visit(inside)
    assert refused.value.reason == "AddressRefused"
    assert tenant.server.sockets == []


def test_nobody_else_vouches_for_a_server(tenant: Tenant) -> None:
    source = replace(tenant.server.source("a.git"), credentials=SourceCredentials("u", "secret-word"))
    with pytest.raises(SourceFault, match=r"is not trusted: .*`caFile`") as refused:
        tenant.visit(source)
    assert refused.value.reason == "CertificateRefused"
    assert tenant.server.asked == []
    source = replace(source, credentials=SourceCredentials("u", "secret-word", ca=b"no certificate"))
    with pytest.raises(SourceFault, match="`caFile`: it holds no certificate in PEM form"):
        tenant.visit(source)


def test_what_this_machine_would_say_counts_for_nothing(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No proxy, no .netrc, no git configuration of the user's."""
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine 127.0.0.1 login me password mine\n")
    (home / ".gitconfig").write_text(
        f'[url "https://192.0.2.1/"]\n insteadOf = https://127.0.0.1\n[transfer]\n fsckObjects = nonsense\n'
        f"[core]\n hooksPath = {home}\n"
    )
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:1")
    monkeypatch.setenv("HOME", str(home))
    assert tenant.visit().head == tenant.repository.head
    assert [asked.headers.get("Authorization") for asked in tenant.server.asked] == [None, None, None]


def test_a_bound_of_time_is_one_of_the_whole_visit(tenant: Tenant) -> None:
    with pytest.raises(SourceFault) as slow:
        tenant.visit(seconds=0.0)
    assert slow.value.reason == "TooSlow"
    assert DEFAULT.bounds.visit == 120.0
