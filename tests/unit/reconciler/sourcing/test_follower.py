"""Following sources in threads: what is known of each, and what becomes of those that are let go."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest
from support.fleetrepo import FleetRepo
from support.gitserver import GitAsked
from support.sourcevisits import NAME, Tenant

from reconciler.repository.sourcerefs import SourceCredentials, source_name
from reconciler.sourcing.followed import FollowedSource, Found
from reconciler.sourcing.follower import SourceFollower
from reconciler.sourcing.kept import KEPT, TRACKED
from reconciler.sourcing.settings import FollowSettings

SETTINGS = FollowSettings(interval=3600, least=0.01, brief=0.3, kept=3600, clean=0.05)
OTHER = source_name("other", "https://example.com/a.git")


@dataclass
class Following:
    """A follower, and what it told."""

    tenant: Tenant
    settings: FollowSettings = SETTINGS
    told: list[set[str]] = field(default_factory=list)
    _told: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.follower = SourceFollower(self.tenant.store, self._news, self.settings)
        self.follower.start()

    def _news(self, names: set[str]) -> None:
        with self._told:
            self.told.append(names)
            self._told.notify_all()

    def follow(self, kept: frozenset[str] = frozenset(), **sources: FollowedSource) -> None:
        self.follower.follow(sources, kept)

    def until(self, holds: Callable[[], bool]) -> None:
        """Looked at whenever there is news, and now and then."""
        for _ in range(200):
            with self._told:
                if holds():
                    return
                self._told.wait(0.1)
        raise AssertionError(f"not so after 20 seconds; told: {self.told}")

    def found(self, name: str, is_so: Callable[[Found], bool]) -> Found:
        self.until(lambda: is_so(self.follower.found(name)))
        return self.follower.found(name)


@pytest.fixture
def following(tenant: Tenant) -> Iterator[Callable[..., Following]]:
    made: list[Following] = []

    def start(settings: FollowSettings = SETTINGS) -> Following:
        made.append(Following(tenant, settings))
        return made[-1]

    yield start
    tenant.server.ended.set()
    for each in made:
        each.follower.close(10)
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("source")] == []


def test_a_source_is_looked_at_at_once_and_what_is_new_is_told(
    tenant: Tenant, following: Callable[..., Following]
) -> None:
    world = following()
    assert world.follower.found(NAME) == Found()
    world.follow(**{NAME: tenant.server.source("a.git")})
    found = world.found(NAME, lambda found: bool(found.commit))
    assert found == Found(tenant.repository.head, looked=found.looked, began=found.began)
    assert world.told == [{NAME}]
    tenant.repository.commit({"app/web.yaml": "two"})
    world.follower.look_now([NAME, "nobody"])
    world.found(NAME, lambda found: found.commit == tenant.repository.head)
    assert world.told == [{NAME}, {NAME}]
    world.follow()
    assert world.follower.found(NAME) == Found()


def test_it_is_looked_at_again_and_again_and_nothing_is_told_of_what_stays(
    tenant: Tenant, following: Callable[..., Following]
) -> None:
    world = following(replace(SETTINGS, interval=0.02))
    world.follow(**{NAME: tenant.server.source("a.git")})
    world.until(lambda: len(tenant.server.asked) > 8)
    tenant.server.password = "unknown"
    found = world.found(NAME, lambda found: bool(found.fault))
    assert (found.commit, found.reason) == (tenant.repository.head, "Unauthorized")
    count = len(tenant.server.asked)
    world.until(lambda: len(tenant.server.asked) > count + 3)
    again = world.follower.found(NAME)
    assert again.since == found.since and again.looked > found.looked
    tenant.server.password = ""
    found = world.found(NAME, lambda found: not found.fault)
    assert (found.commit, found.since, found.reason, found.hint) == (tenant.repository.head, 0.0, "", "")
    world.until(lambda: len(world.told) == 3)


def test_what_was_known_before_a_restart_is_known_though_nobody_answers(
    tenant: Tenant, following: Callable[..., Following]
) -> None:
    first = following()
    source = tenant.server.source("a.git")
    first.follow(**{NAME: source})
    head = first.found(NAME, lambda found: bool(found.commit)).commit
    first.follower.close(10)
    tenant.server.spoil = lambda asked: asked.reply(b"", 500) is None
    second = following()
    second.follow(**{NAME: source})
    assert second.follower.found(NAME).commit == head
    found = second.found(NAME, lambda found: bool(found.fault))
    assert (found.commit, found.reason) == (head, "Failing")


def test_one_that_hangs_delays_no_other(tenant: Tenant, following: Callable[..., Following]) -> None:
    """Ten that hang and eight slots, whoever comes first."""

    def hang(asked: GitAsked) -> bool:
        if asked.repository.startswith("hang"):
            asked.ended.wait()
            return True
        return False

    tenant.server.spoil = hang
    world = following()
    names = {source_name(f"{number}", "hang"): tenant.server.source(f"hang{number}.git") for number in range(10)}
    well = {source_name(f"{number}", "well"): tenant.server.source("a.git") for number in range(10)}
    world.follow(**names, **well)
    world.until(lambda: all(world.follower.found(name).commit for name in well))
    tenant.repository.commit({"app/web.yaml": "two"})
    world.follower.look_now(well)
    world.until(lambda: all(world.follower.found(name).commit == tenant.repository.head for name in well))
    assert not any(world.follower.found(name).looked for name in names), "and these are at it still"


def test_other_credentials_or_another_branch_are_gone_by_at_once(
    tenant: Tenant, following: Callable[..., Following]
) -> None:
    tenant.server.password = "right"
    world = following()
    source = tenant.server.source("a.git", credentials=SourceCredentials("u", "wrong"))
    world.follow(**{NAME: source})
    assert world.found(NAME, lambda found: bool(found.fault)).reason == "Unauthorized"
    right = tenant.server.source("a.git", credentials=SourceCredentials("u", "right"))
    world.follow(**{NAME: right})
    world.found(NAME, lambda found: bool(found.commit) and not found.fault)
    next_one = tenant.server.source("a.git", "next", credentials=SourceCredentials("u", "right"))
    world.follow(**{NAME: next_one})
    assert world.follower.found(NAME) == Found(), "what another branch is at says nothing of this one"
    assert world.found(NAME, lambda found: bool(found.fault)).reason == "BranchNotFound"
    world.follow(**{NAME: right})
    assert world.follower.found(NAME).commit == tenant.repository.head


def test_what_comes_of_a_visit_to_a_former_branch_does_not_count(
    tenant: Tenant, following: Callable[..., Following]
) -> None:
    reached, go = threading.Event(), threading.Event()

    def wait(asked: GitAsked) -> bool:
        if asked.step == "refs":
            reached.set()
            go.wait(10)
        return False

    tenant.server.spoil = wait
    world = following()
    world.follow(**{NAME: tenant.server.source("a.git")})
    reached.wait(10)
    tenant.repository.repo.references.create("refs/heads/next", tenant.repository.head)
    tenant.repository.commit({"app/web.yaml": "two"})
    next_head = tenant.repository.repo.ref("refs/heads/next")
    world.follow(**{NAME: tenant.server.source("a.git", "next")})
    go.set()
    assert world.found(NAME, lambda found: bool(found.commit)).commit == next_head
    assert all(found == {NAME} for found in world.told) and len(world.told) == 1


def test_a_repository_goes_a_while_after_nobody_wants_it(tenant: Tenant, following: Callable[..., Following]) -> None:
    source = tenant.server.source("a.git")
    first = following()
    first.follow(**{NAME: source, OTHER: source})
    first.until(lambda: all(first.follower.found(name).commit for name in (NAME, OTHER)))
    first.follow()
    first.until(lambda: NAME in first.follower._unwanted.going)
    assert tenant.store.names() == {NAME, OTHER}, "not at once"
    first.follower.close(10)
    second = following(replace(SETTINGS, kept=0.05, clean=0.02))
    assert tenant.store.names() == {NAME, OTHER}, "nor before anybody said what is wanted"
    second.follow(kept=frozenset({OTHER}))
    second.until(lambda: tenant.store.names() == {OTHER})


def test_heads_that_were_left_stay_for_a_while_and_what_is_kept_for_good(
    tenant: Tenant, following: Callable[..., Following]
) -> None:
    first = tenant.repository.head
    world = following()
    source = tenant.server.source("a.git")
    world.follow(**{NAME: source})
    world.found(NAME, lambda found: bool(found.commit))

    def rewritten(text: str) -> str:
        head = tenant.repository.commit({"app/web.yaml": text}, parent=first)
        world.follower.look_now([NAME])
        world.found(NAME, lambda found: found.commit == head)
        return head

    two, three = rewritten("two"), rewritten("three")
    world.follow(**{NAME: replace(source, keep=frozenset({first}))})
    rewritten("four")
    assert {KEPT + two, KEPT + three} <= set(tenant.here.references)
    world.follower._states[NAME].left[two] = -1e9
    five = rewritten("five")
    names = set(tenant.here.references)
    assert KEPT + two not in names and {KEPT + first, KEPT + three, TRACKED + "main"} <= names
    assert tenant.here.ref(TRACKED + "main") == five


def test_news_that_somebody_fails_to_take_are_not_the_last(tenant: Tenant) -> None:
    told = threading.Semaphore(0)

    def fail(_: set[str]) -> None:
        told.release()
        raise ValueError("not now")

    follower = SourceFollower(tenant.store, fail, SETTINGS)
    follower.start()
    try:
        follower.follow({NAME: tenant.server.source("a.git")})
        assert told.acquire(timeout=20)
        tenant.repository.commit({"app/web.yaml": "two"})
        follower.look_now([NAME])
        assert told.acquire(timeout=20)
    finally:
        follower.close(10)


def test_an_end_waits_for_nobody_who_hangs(tenant: Tenant, following: Callable[..., Following]) -> None:
    reached = threading.Event()

    def hang(asked: GitAsked) -> bool:
        reached.set()
        asked.ended.wait()
        return True

    tenant.server.spoil = hang
    world = following()
    world.follow(**{NAME: tenant.server.source("a.git")})
    assert reached.wait(10)
    world.follower.close(10)
    assert world.follower.found(NAME).fault == "", "its end says nothing of the source"
    assert tenant.left_over() == []


def test_a_source_swapped_for_anothers_repository_finds_nothing_of_the_former(
    tenant: Tenant, following: Callable[..., Following]
) -> None:
    """The URL is another, so the name is; and behind the same URL another history is a head that does not contain the
    former."""
    other = FleetRepo(tenant.server.folder / "b.git")
    secret = other.commit({"secret.yaml": "other tenant's"})
    world = following()
    world.follow(**{OTHER: tenant.server.source("b.git")})
    world.found(OTHER, lambda found: bool(found.commit))
    world.follow(**{NAME: tenant.server.source("a.git")}, kept=frozenset({OTHER}))
    former = world.found(NAME, lambda found: bool(found.commit)).commit
    assert not tenant.here.has(secret)
    tenant.repository.path.rename(tenant.server.folder / "moved.git")
    other.path.rename(tenant.repository.path)
    world.follower.look_now([NAME])
    world.found(NAME, lambda found: found.commit == secret)
    assert not tenant.here.is_ancestor(former, secret)
    assert KEPT + former in set(tenant.here.references)


def test_a_ref_that_moves_while_it_is_fetched(tenant: Tenant, following: Callable[..., Following]) -> None:
    """Somebody forces the branch elsewhere between the look and the fetch: what was looked at comes, whole, and what is
    there now with the next look."""
    first = tenant.repository.head

    def force(asked: GitAsked) -> bool:
        if asked.step == "fetch" and len(tenant.repository.commits) == 1:
            tenant.repository.repo.references.create("refs/heads/other", tenant.repository.head)
            tenant.repository.commit({"app/web.yaml": "forced"}, parent=first)
        return False

    tenant.server.spoil = force
    world = following()
    world.follow(**{NAME: tenant.server.source("a.git")})
    assert world.found(NAME, lambda found: bool(found.commit)).commit == first
    world.follower.look_now([NAME])
    world.found(NAME, lambda found: found.commit == tenant.repository.head)


def wanted(tenant: Tenant) -> Mapping[str, FollowedSource]:
    return {NAME: tenant.server.source("a.git")}


def test_the_same_set_again_asks_nobody(tenant: Tenant, following: Callable[..., Following]) -> None:
    world = following()
    world.follower.follow(wanted(tenant))
    world.found(NAME, lambda found: bool(found.looked))
    count = len(tenant.server.asked)
    for _ in range(5):
        world.follower.follow(wanted(tenant))
    world.follower.close(10)
    assert len(tenant.server.asked) == count
