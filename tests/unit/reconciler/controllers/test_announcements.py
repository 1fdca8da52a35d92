"""Who is told of commits: each thing once, however the other side fails, and over restarts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from support.fakeforges import TOKEN, FakeForge, FakeGitea, Said, serving
from support.following import Following
from support.notified import FakeReceiver, receiving

from apiserver.registry import announced
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Delete, Put, Store
from apiserver.stores import DECLARED
from reconciler.controllers.announcements import Announcements, AnnouncingSettings
from reconciler.controllers.commithook import CommitHook, delivery_of, document
from reconciler.controllers.commitstatuses import CommitStatuses, statuses
from reconciler.forges.commitstatus import StatusForge
from reconciler.forges.keyfile import KeyFile
from reconciler.forges.notification import Notified, signature
from reconciler.forges.place import StatusPlace
from reconciler.forges.wire import ForgePatience
from reconciler.plan.outcome import MOST, CommitOutcome, WorkspaceOutcome, outcome
from reconciler.plan.pushedby import NOBODY, SERVER, PushedBy

ONE, TWO = "1" * 40, "2" * 40
GOOD, BAD = WorkspaceOutcome("root:a", "configured"), WorkspaceOutcome("root:a", "held", errors=("app.yaml:2: no",))
QUICK = AnnouncingSettings(first=0.01, longest=0.02, ours=0.01, asked=0.03, tries=3)
ONCE = ForgePatience(tries=1)


class Telling:
    """A store whose outcomes a forge is told of. `said`: what is told of troubles."""

    def __init__(
        self, fake: FakeForge, token: Path, settings: AnnouncingSettings = QUICK, patience: ForgePatience = ONCE
    ) -> None:
        self.fake, self.settings, self.patience, self.now = fake, settings, patience, 0.0
        self.store: Store = MemoryStore(declared=DECLARED)
        self.key = KeyFile(token, "keys/forges/token")
        self.said: list[str] = []
        self.begin()

    def speak(self) -> StatusForge:
        return StatusPlace(self.fake.forge, self.fake.url, "shop/fleet").spoken_to(self.key.read(), self.patience)

    def begin(self) -> None:
        """As at the start of a server."""
        made = CommitStatuses(self.speak, "https://status.example.org/{commit}/{workspace}")
        self.controller = Announcements("forge", self.store, made, self.said.append, self.settings, lambda: self.now)
        self.following = Following.of(self.store, self.controller)

    def became(self, commit: str, *found: WorkspaceOutcome) -> None:
        value = outcome(CommitOutcome(commit, "fleet", "main"), found).encode()
        self.store.write(Put(announced.outcome_key(commit), value)).result()

    def settle(self) -> None:
        self.following.settle()

    def later(self, eventually: Callable[..., object], condition: Callable[[], object]) -> None:
        """Time goes by until something is so."""

        def look() -> object:
            self.now += 1000
            self.settle()
            return condition()

        eventually(look)

    def failing(self) -> str:
        return announced.failing(self.store)["forge"]


@pytest.fixture
def token(tmp_path: Path) -> Path:
    made = tmp_path / "token"
    made.write_text(f"{TOKEN}\n")
    made.chmod(0o600)
    return made


@pytest.fixture
def telling(token: Path) -> Iterator[Telling]:
    with serving(FakeGitea()) as fake:
        yield Telling(fake, token)


def test_a_status_for_each_and_one_for_all(telling: Telling) -> None:
    telling.became(ONE, BAD, WorkspaceOutcome("root:b", "created"))
    telling.settle()
    assert telling.fake.newest(ONE) == {
        "treeplane": "failure",
        "treeplane/root:a": "failure",
        "treeplane/root:b": "success",
    }
    told = {sent["context"]: sent["description"] for _, sent in telling.fake.stated}
    assert told == {
        "treeplane": "1 held, 1 created",
        "treeplane/root:a": "app.yaml:2: no",
        "treeplane/root:b": "created",
    }
    assert telling.fake.stated[1][1]["target_url"] == f"https://status.example.org/{ONE}/root:a"


def test_the_same_is_said_once(telling: Telling) -> None:
    telling.became(ONE, GOOD)
    telling.settle()
    asked = len(telling.fake.asked)
    telling.became(ONE, GOOD)
    telling.settle()
    telling.begin()  # a restart
    telling.settle()
    telling.became(TWO)
    telling.settle()
    assert len(telling.fake.asked) == asked + 1
    assert telling.fake.newest(TWO) == {"treeplane": "success"}


def test_a_restart_without_its_checkpoint_says_nothing_again(telling: Telling) -> None:
    """The rows beside the outcomes say what was said."""
    telling.became(ONE, GOOD)
    telling.settle()
    asked = len(telling.fake.asked)
    telling.controller.version = "another"
    telling.begin()
    telling.settle()
    assert len(telling.fake.asked) == asked


def test_of_a_verdict_that_turned_only_that_is_said(telling: Telling) -> None:
    telling.became(ONE, BAD, WorkspaceOutcome("root:b", "created"))
    telling.settle()
    telling.fake.stated.clear()
    telling.became(ONE, WorkspaceOutcome("root:a", "configured", mended=True), WorkspaceOutcome("root:b", "created"))
    telling.settle()
    assert [(sent["context"], sent["state"], sent["description"]) for _, sent in telling.fake.stated] == [
        ("treeplane", "success", "1 created, 1 configured"),
        ("treeplane/root:a", "success", "configured; not held any more"),
    ]


def test_while_a_forge_is_away_the_newest_verdict_counts(telling: Telling, eventually: Callable[..., object]) -> None:
    telling.fake.faults += [("POST", Said(503, b""))]
    telling.became(ONE, BAD)
    telling.settle()
    assert telling.fake.stated == []
    telling.became(ONE, WorkspaceOutcome("root:a", "configured", mended=True))
    telling.later(eventually, lambda: telling.fake.newest(ONE).get("treeplane/root:a") == "success")
    assert "failure" not in [sent["state"] for _, sent in telling.fake.stated]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_one_that_is_away_is_asked_for_one_commit_at_a_time(
    telling: Telling, eventually: Callable[..., object], status: int
) -> None:
    telling.fake.faults += [("POST", Said(status, b""))] * 2
    for number in range(9):
        telling.became(str(number) * 40, GOOD)
    telling.settle()
    assert len(telling.fake.asked) == 1
    assert f"({status})" in telling.failing() or f"answers {status}" in telling.failing()
    telling.later(eventually, lambda: len(telling.fake.stated) == 18)
    assert telling.failing() == ""
    assert [text.partition(":")[0] for text in telling.said] == [
        "the forge is not told what becomes of commits",
        "the forge is told again what becomes of commits",
    ]


def test_it_is_waited_for_as_long_as_it_says_and_no_longer(token: Path) -> None:
    settings = AnnouncingSettings(first=1.0, longest=60.0, asked=100.0)
    with serving(FakeGitea()) as fake:
        telling = Telling(fake, token, settings)
        for asked, waited in (("30", 30.0), ("999999", 100.0), ("0", 4.0)):
            fake.faults.append(("POST", Said(429, {}, {"Retry-After": asked})))
            telling.became(ONE, GOOD)
            before = telling.now = telling.controller._not_before
            telling.controller.reconcile(announced.outcome_key(ONE))
            assert telling.controller._not_before - before == waited


def test_one_that_never_answers_holds_nobody(token: Path, eventually: Callable[..., object]) -> None:
    """Neither who loads, nor the end of the process."""
    with receiving(FakeReceiver(silent=True)) as away:
        fake = FakeGitea()
        fake.url = away.url
        telling = Telling(fake, token, patience=ForgePatience(tries=1, quiet=0.5))
        telling.following.start()
        telling.became(ONE, GOOD)
        eventually(lambda: away.got)
        telling.became(TWO, GOOD)
        telling.controller.end()
        telling.following.stop()
        assert telling.store.get(announced.outcome_key(TWO)) is not None


def test_what_a_forge_refuses_is_left_after_some_tries(telling: Telling, eventually: Callable[..., object]) -> None:
    """A commit may come there later; one that never does keeps nobody from hearing of others."""
    telling.fake.faults += [("POST", Said(404, {"message": "no such commit"}))] * 3
    telling.became(ONE, GOOD)
    telling.settle()
    telling.became(TWO, GOOD)
    telling.settle()
    assert set(telling.fake.newest(TWO)) in ({"treeplane", "treeplane/root:a"}, set())
    telling.later(eventually, lambda: len(telling.fake.asked) >= 6 and telling.following.idle)
    assert set(telling.fake.newest(TWO)) == {"treeplane", "treeplane/root:a"}
    assert telling.said == []


def test_a_token_that_is_replaced_is_read_anew(
    telling: Telling, token: Path, eventually: Callable[..., object], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    token.write_text("a-wrong-token")
    telling.became(ONE, GOOD)
    telling.settle()
    assert "does not take the token" in telling.failing()
    token.chmod(0o644)
    telling.later(eventually, lambda: "read by others" in telling.failing())
    token.unlink()
    telling.later(eventually, lambda: "cannot be read" in telling.failing())
    token.write_text(TOKEN)
    token.chmod(0o600)
    telling.later(eventually, lambda: len(telling.fake.stated) == 2)
    shown = caplog.text + "".join(telling.said) + repr(telling.controller.__dict__)
    assert TOKEN not in shown
    assert "a-wrong-token" not in shown


def test_what_is_forgotten_meanwhile_is_not_said(telling: Telling, eventually: Callable[..., object]) -> None:
    telling.fake.faults += [("POST", Said(503, b""))]
    telling.became(ONE, GOOD)
    telling.settle()
    telling.store.write(Delete(announced.outcome_key(ONE)), *announced.untold(telling.store, ONE)).result()
    telling.became(TWO, GOOD)
    telling.later(eventually, lambda: telling.fake.newest(TWO))
    assert telling.fake.newest(ONE) == {}
    assert announced.told(telling.store, "forge", ONE) == {}


def test_after_the_end_nothing_is_said(telling: Telling) -> None:
    telling.controller.end()
    telling.became(ONE, GOOD)
    telling.settle()
    assert telling.fake.asked == []


def test_thousands_get_a_bounded_number_of_statuses(telling: Telling) -> None:
    many = [WorkspaceOutcome(f"root:w{n:04}", "created") for n in range(3000)]
    telling.became(ONE, *many, WorkspaceOutcome("root:z", "held", errors=("z.yaml:1: no",)))
    telling.settle()
    assert len(telling.fake.stated) == MOST + 1
    assert telling.fake.newest(ONE)["treeplane/root:z"] == "failure"
    [summary] = [sent for _, sent in telling.fake.stated if sent["context"] == "treeplane"]
    assert summary["description"] == "1 held, 3000 created; 2951 of them have no status of their own"


def test_a_commit_that_is_held_as_a_whole_has_one_status() -> None:
    [one] = statuses(CommitOutcome(ONE, problems=("treeplane.yaml:1: no\nsuch field",)))
    assert (one.context, one.good) == ("treeplane", False)
    assert one.description == "not served: treeplane.yaml:1: no such field"


def test_of_one_that_is_known_in_part_there_is_none_for_all() -> None:
    [one] = statuses(CommitOutcome(ONE, counts={"configured": 1}, workspaces=(GOOD,), partial=True))
    assert one.context == "treeplane/root:a"


def test_hostile_words_become_one_line() -> None:
    text = "a.yaml:1: \x1b]0;x\x07\r\nSet-Cookie: a=b\u202e" + "x" * 999
    hostile = WorkspaceOutcome("root:a", "held", errors=(text,))
    _, one = statuses(outcome(CommitOutcome(ONE), [hostile]), "https://s.example.org/?w={workspace}&c={commit}")
    assert one.description.isprintable()
    assert len(one.description) == 140
    assert one.url == f"https://s.example.org/?w=root:a&c={ONE}"


class Hooked:
    """As Telling, of a webhook."""

    def __init__(self, receiver: FakeReceiver, secret: Path) -> None:
        self.store: Store = MemoryStore(declared=DECLARED)
        hook = CommitHook(Notified(receiver.url, ONCE), KeyFile(secret, "keys/forges/webhook-secret").read)
        self.controller = Announcements("webhook", self.store, hook, settings=QUICK)
        self.following = Following.of(self.store, self.controller)

    def became(self, found: CommitOutcome) -> None:
        self.store.write(Put(announced.outcome_key(found.commit), found.encode())).result()
        self.following.settle()


def test_the_webhook_is_signed_and_keeps_its_id(token: Path, eventually: Callable[..., object]) -> None:
    held = outcome(CommitOutcome(ONE, "fleet-id", "main"), [BAD, WorkspaceOutcome("root:b", "created")])
    with receiving() as receiver:
        receiver.faults += [Said(500, b""), Said(429, b"", {"Retry-After": "0"})]
        hooked = Hooked(receiver, token)
        hooked.became(held)
        eventually(lambda: hooked.following.settle() or len(receiver.got) == 3)
        hooked.became(held)
        first, _, third = receiver.got
        assert first == third, "sent again it is the same, its signature too"
        assert first.headers["x-treeplane-signature-256"] == signature(first.body, TOKEN)
        assert first.headers["x-treeplane-delivery"] == first.document["id"] == delivery_of(held)
        hooked.became(outcome(CommitOutcome(ONE, "fleet-id", "main"), [GOOD]))
        last = receiver.got[-1]
        assert (last.document["id"], last.document["state"]) == (first.document["id"], "success")
        assert delivery_of(CommitOutcome(TWO, "fleet-id", "main")) != first.document["id"]


def test_who_pushed_is_told() -> None:
    by = PushedBy("alice\n", SERVER)
    found = CommitOutcome.decode(CommitOutcome(ONE, counts={"configured": 1}, pushed_by=by).encode())
    assert found.pushed_by == by
    assert document(found)["pushedBy"] == {"user": "alice\n", "how": "server"}
    [one] = statuses(found)
    assert one.description.startswith("1 configured; ")
    assert one.description.endswith("pushed by alice (through the API)")
    before = orjson.loads(found.encode())
    del before["pushed_by"]  # as an older version wrote it
    assert CommitOutcome.decode(orjson.dumps(before)).pushed_by == NOBODY


def test_of_several_users_commit_it_is_told_that_it_is_theirs() -> None:
    by = PushedBy.server(["ann", "bob\n", "cid", "dan", "eve"])
    found = CommitOutcome.decode(CommitOutcome(ONE, counts={"configured": 1}, pushed_by=by).encode())
    assert found.pushed_by == by
    assert document(found)["pushedBy"] == {"how": "several", "users": ["ann", "bob\n", "cid"], "more": 2}
    [one] = statuses(found)
    assert one.description.endswith("pushed by treeplane for ann, bob , cid and 2 more")


def test_the_document_is_what_is_documented() -> None:
    found = document(outcome(CommitOutcome(ONE, "fleet-id", "main"), [BAD, WorkspaceOutcome("root:b", "created")]))
    assert found == {
        "version": 1,
        "id": found["id"],
        "fleet": "fleet-id",
        "branch": "main",
        "commit": ONE,
        "pushedBy": None,
        "state": "failure",
        "problems": [],
        "counts": {"held": 1, "created": 1},
        "workspaces": [
            {"path": "root:a", "became": "held", "mended": False, "errors": ["app.yaml:2: no"]},
            {"path": "root:b", "became": "created", "mended": False, "errors": []},
        ],
        "omitted": 0,
    }
    text = (Path(__file__).parents[4] / "docs" / "reviews.md").read_text()
    assert all(f'"{name}"' in text for name in (*found, "path", "became", "mended", "errors"))


def test_nothing_is_posted_of_what_is_known_in_part(token: Path) -> None:
    with receiving() as receiver:
        Hooked(receiver, token).became(CommitOutcome(ONE, counts={"configured": 1}, workspaces=(GOOD,), partial=True))
        assert receiver.got == []
