"""Tokens of targets are renewed before they end, by a clock that the test has; what targets give may be no token."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from support.tokens import kubeconfig, raw, token

from apiserver.model.conditions import Condition
from reconciler.controllers.failures import Expected
from reconciler.controllers.targets import Denied, Kubeconfig
from reconciler.syncing import kubeconfig as reading
from reconciler.syncing.client import ClientSettings, TargetClient
from reconciler.syncing.errors import TargetRefused, TargetUnreachable
from reconciler.syncing.lifetime import LARGEST
from reconciler.syncing.renewal import Renewals

DAY = 86400.0
LIFE = 30 * DAY
TARGET = {"metadata": {"name": "west"}}
FIRST = token(0, LIFE)


class Target(TargetClient):
    """Gives tokens as `gives` says."""

    def __init__(self, gives: Callable[[int], str]) -> None:
        self.settings = ClientSettings()
        self.gives, self.asked = gives, list[tuple[str, str, int]]()
        self.why = ""
        self.barred = lambda: self.why

    def token(self, namespace: str, name: str, seconds: int) -> str:
        self.asked.append((namespace, name, seconds))
        return self.gives(seconds)


class Trial:
    """The connection by which a new token is tried."""

    def __init__(self, failure: Expected | None) -> None:
        self._failure, self.closed = failure, False

    def ping(self) -> None:
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        self.closed = True


class Ground:
    """One target, its renewals, its Secret and the time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.content = kubeconfig(token=FIRST)
        self.why = ""
        self.kept: list[bytes] = []
        self.failure: Expected | None = None
        self.tried: list[Trial] = []
        self.target = Target(lambda seconds: token(self.now, self.now + seconds))
        self.renewals = Renewals(self, self.connect, lambda: self.now)  # type: ignore[arg-type]

    def refuses(self, _: Any) -> str:
        return self.why

    def keep(self, _: Any, before: bytes, after: bytes) -> None:
        assert before == self.content
        self.content = after
        self.kept.append(after)

    def connect(self, _: Kubeconfig) -> Trial:
        self.tried.append(Trial(self.failure))
        return self.tried[-1]

    def beat(self, at: float) -> Condition:
        self.now = at
        self.renewals.sees("k", TARGET, Kubeconfig(self.content))
        self.renewals.renew("k", self.target)
        told = self.renewals.told("k")
        assert told is not None
        return told


@pytest.fixture
def ground() -> Ground:
    return Ground()


def test_it_is_renewed_at_four_fifths_of_its_life_and_lasts_as_long_again(ground: Ground) -> None:
    assert ground.beat(0.74 * LIFE)["status"] == "True"
    assert ground.kept == []
    ground.beat(0.81 * LIFE)
    assert ground.target.asked == [("treeplane-system", "treeplane", int(LIFE))]
    assert len(ground.kept) == 1
    assert reading.read(ground.kept[0]) != reading.read(kubeconfig(token=FIRST))
    assert [each.closed for each in ground.tried] == [True]
    told = ground.beat(0.81 * LIFE + 20)
    assert "ends at 1970-02-24" in told["message"]
    assert len(ground.kept) == 1


def test_a_kubeconfig_keeps_all_but_its_token(ground: Ground) -> None:
    before = reading.read(ground.content)
    ground.beat(0.81 * LIFE)
    after = reading.read(ground.content)
    assert (after.host, after.port, after.ca, after.certificate) == (
        before.host, before.port, before.ca, before.certificate,
    )  # fmt: skip


def test_who_may_not_write_to_the_target_leaves_it_to_who_may(ground: Ground) -> None:
    ground.target.why = "another server holds the Lease"
    assert ground.beat(0.81 * LIFE - 3 * DAY)["reason"] == "CredentialsValid"
    assert ground.target.asked == []


def test_a_secret_that_cannot_be_written_is_told_from_a_week_before(ground: Ground) -> None:
    ground.why = "the Secret stands in git"
    early = ground.beat(LIFE - 7 * DAY - 1)
    assert (early["status"], early["reason"]) == ("True", "CredentialsValid")
    late = ground.beat(LIFE - 7 * DAY)
    assert (late["status"], late["reason"]) == ("False", "SecretNotWritable")
    assert "the Secret stands in git" in late["message"]
    assert ground.target.asked == [], "no token is made that nobody can keep"


def test_what_is_no_accounts_token_is_told_too(ground: Ground) -> None:
    ground.content = kubeconfig(token=token(0, LIFE, "jane"))
    told = ground.beat(LIFE - DAY)
    assert (told["status"], told["reason"]) == ("False", "NotRenewable")
    assert "treeplane target add west --kubeconfig FILE" in told["message"]


def test_a_failure_is_tried_again_ever_more_seldom_and_told(ground: Ground) -> None:
    def down(_: int) -> str:
        raise TargetUnreachable("timed out")

    ground.target.gives = down
    at = 0.81 * LIFE
    while at < LIFE:
        told = ground.beat(at)
        at += 600
    assert (told["status"], told["reason"]) == ("False", "RenewalFailed")
    assert "timed out" in told["message"]
    assert len(ground.target.asked) < 0.19 * LIFE / 3600 + 10
    ground.target.gives = lambda seconds: token(ground.now, ground.now + seconds)
    ground.beat(LIFE + 3600)
    assert ground.beat(LIFE + 3700)["status"] == "True"


def test_one_that_has_ended_is_no_failure_of_the_target(ground: Ground) -> None:
    ground.beat(0.0)
    failure: Expected = Denied("Unauthorized", "it does not accept the kubeconfig's credentials")
    assert ground.renewals.explained("k", failure) is failure
    ground.now = LIFE
    for error in (failure, TargetUnreachable("timed out")):
        found = ground.renewals.explained("k", error)
        assert isinstance(found, Denied)
        assert found.reason == "CredentialsEnded"
        assert "nothing moves away from it" in str(found)


def test_nothing_is_told_of_what_has_no_end(ground: Ground) -> None:
    for content in (kubeconfig(token="opaque"), b"nothing"):
        ground.renewals.sees("k", TARGET, Kubeconfig(content))
        assert ground.renewals.told("k") is None
    ground.renewals.sees("k", TARGET, Kubeconfig(ground.content, embedded=True))
    assert ground.renewals.told("k") is None
    ground.renewals.sees("k", TARGET, None)
    assert ground.renewals.told("k") is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (lambda _: "opaque", "no token with an end"),
        (lambda now: token(now, now + LIFE, x="x" * LARGEST), "no token with an end"),
        (lambda now: token(now, now + LIFE) + "\r\nEvil: header", "no token with an end"),
        (lambda now: raw({"iat": now, "exp": 1e18}), "no token with an end"),
        (lambda now: token(now, now + LIFE, "system:serviceaccount:kube-system:admin"), "of another account"),
        (lambda now: token(now, now + 10), "ends within 300 s"),
    ],
)
def test_strange_tokens_are_not_taken_and_not_told(
    ground: Ground, given: Callable[[float], str], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    made: list[str] = []

    def gives(_: int) -> str:
        made.append(given(ground.now))
        return made[-1]

    ground.target.gives = gives
    told = ground.beat(LIFE - DAY)
    assert (told["reason"], ground.kept) == ("RenewalFailed", [])
    assert why in told["message"]
    assert not any(each in told["message"] or each in caplog.text for each in (*made, FIRST))


def test_a_token_that_does_not_let_us_in_is_not_taken(ground: Ground) -> None:
    """Another server's, say: it was tried at this target alone."""
    ground.failure = Denied("Unauthorized", "it does not accept the kubeconfig's credentials")
    told = ground.beat(LIFE - DAY)
    assert (told["reason"], ground.kept) == ("RenewalFailed", [])
    assert "did not take the token that it gave" in told["message"]


def test_a_target_whose_tokens_are_shorter_by_now_keeps_the_longer_one_for_a_while(ground: Ground) -> None:
    ground.target.gives = lambda _: token(ground.now, ground.now + 3600)
    assert ground.beat(0.81 * LIFE)["reason"] == "CredentialsValid"
    assert ground.kept == []
    ground.beat(LIFE - 1700)
    assert len(ground.kept) == 1
    assert len(ground.target.asked) == 2


def test_tokens_that_end_soon_are_asked_for_no_more_than_every_five_minutes(ground: Ground) -> None:
    ground.target.gives = lambda _: token(ground.now - 1e6, ground.now + 301)
    ground.content = kubeconfig(token=token(0, 301))
    for at in range(260, 3860, 20):
        ground.beat(float(at))
    assert len(ground.target.asked) <= 13


def test_what_a_target_says_of_a_token_is_not_told(ground: Ground) -> None:
    def refuses(_: int) -> str:
        raise TargetRefused(403, "Forbidden", f"no: {FIRST}")

    ground.target.gives = refuses
    told = ground.beat(LIFE - DAY)
    assert FIRST not in told["message"]
    assert "needs the right create on serviceaccounts/token" in told["message"]
