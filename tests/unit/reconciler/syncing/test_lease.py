"""Who may write to a real target: the rules of the Lease, by a clock of the test's."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from support.leases import Clock, Link, Target

from reconciler.controllers.failures import Expected
from reconciler.syncing.lease import EPOCH, Contender, Lease, LeaseSettings, name_of


@dataclass
class Server:
    """One start of a server: `lease` is run when it is due, as keeper.py does it."""

    contender: Contender
    link: Link
    lease: Lease
    clock: Clock
    due: float = 0.0

    def run(self) -> None:
        if self.clock.now >= self.due:
            try:
                self.due = self.clock.now + self.lease.step()
            except Expected:
                self.due = self.clock.now + 1

    @property
    def writes(self) -> bool:
        return self.lease.left() > 0


class Scene:
    def __init__(self) -> None:
        self.clock, self.target = Clock(), Target()

    def server(self, writer: str, epoch: int = 1, ended: str = "") -> Server:
        contender, link = Contender(writer, epoch, ended), Link(self.target, self.clock)
        return Server(contender, link, Lease("treeplane-f", contender, link, now=self.clock), self.clock)

    def run(self, seconds: float, *servers: Server) -> None:
        """In steps of a quarter of a second."""
        until = self.clock.now + seconds
        while self.clock.now < until:
            for server in servers:
                server.run()
            self.clock.now += 0.25
        for server in servers:
            server.run()


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_the_first_one_has_it_at_once_and_keeps_it(scene: Scene) -> None:
    first = scene.server("a/1")
    assert not first.writes
    first.run()
    assert first.writes
    assert scene.target.lease is not None
    spec = scene.target.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a/1", 15, 0)
    assert scene.target.lease["metadata"]["annotations"] == {EPOCH: "1"}
    scene.run(60, first)
    assert first.writes
    assert scene.target.writes == 13, "every five seconds"


def test_who_does_not_reach_it_stops_five_seconds_before_it_runs_out(scene: Scene) -> None:
    first = scene.server("a/1")
    first.run()
    first.link.cut = True
    scene.run(9.5, first)
    assert 0 < first.lease.left() <= 0.5
    scene.run(0.5, first)
    assert not first.writes
    first.link.cut = False
    scene.run(1, first)
    assert first.writes


def test_an_answer_that_is_late_counts_from_when_it_was_asked_for(scene: Scene) -> None:
    first = scene.server("a/1")
    first.link.slow = 4.0
    first.run()
    assert first.lease.left() == 15 - 5 - 8, "two requests of four seconds"
    first.due = 0
    first.run()
    assert first.lease.left() == 15 - 5 - 4, "a renewal is one"


def test_what_was_given_back_is_the_next_ones_at_once(scene: Scene) -> None:
    first, second = scene.server("a/1"), scene.server("b/1")
    first.run()
    second.run()
    assert not second.writes
    first.lease.end("the server is stopping")
    assert not first.writes
    first.lease.release()
    assert scene.target.lease is not None
    assert "holderIdentity" not in scene.target.lease["spec"]
    scene.run(1, second)
    assert second.writes


@pytest.mark.parametrize("how", ["over another target", "by a renewal whose answer is lost"])
def test_one_that_changed_since_we_saw_it_and_is_ours_is_given_back(scene: Scene, how: str) -> None:
    first = scene.server("a/1")
    first.run()
    other = scene.server("a/1") if how == "over another target" else first
    other.link.deaf = other is first
    scene.run(6, other)
    other.link.deaf = False
    first.lease.end("the server is stopping")
    first.lease.release()
    assert scene.target.lease is not None
    assert "holderIdentity" not in scene.target.lease["spec"]


def test_one_that_another_took_meanwhile_stays_its_own(scene: Scene) -> None:
    first, second = scene.server("a/1"), scene.server("b/1", epoch=2)
    first.run()
    second.run()
    first.lease.end("the server is stopping")
    first.lease.release()
    assert scene.target.lease is not None
    assert scene.target.lease["spec"]["holderIdentity"] == "b/1"


def test_an_equal_epoch_waits_until_it_has_run_out(scene: Scene) -> None:
    first, second = scene.server("a/1"), scene.server("b/1")
    first.run()
    scene.run(30, first, second)
    assert first.writes
    assert not second.writes
    assert "a/1 has it" in second.lease.why()
    scene.run(14.5, second)  # the first one was killed
    assert not second.writes
    scene.run(1.0, second)
    assert second.writes


def test_a_later_epoch_takes_a_held_one_and_writes_15_seconds_later(scene: Scene) -> None:
    first, second = scene.server("a/1"), scene.server("b/1", epoch=2)
    scene.run(7, first)
    second.run()
    assert not second.writes
    assert "taken over" in second.lease.why()
    scene.run(5, first, second)
    assert not first.writes, "it notices with its next renewal"
    scene.run(9, first, second)
    assert not second.writes
    scene.run(1.5, first, second)
    assert second.writes
    assert "b/1 had it with epoch 2" in first.lease.why()


def test_an_old_server_cut_off_from_git_blocks_nobody(scene: Scene) -> None:
    """It goes on renewing, as it knows of nobody."""
    old, new = scene.server("a/1"), scene.server("b/1", epoch=2)
    scene.run(20, old)
    scene.run(16, old, new)
    assert new.writes
    new.lease.end("the server is stopping")
    new.lease.release()
    scene.run(60, old)
    assert not old.writes, "not even while the new one is away"
    again = scene.server("b/2", epoch=2)
    scene.run(1, old, again)
    assert again.writes


def test_an_earlier_epoch_is_told_what_gives_it_the_lease(scene: Scene) -> None:
    """Where the fleet began anew, say, and nobody is left of the later epoch."""
    gone, mine = scene.server("a/1", epoch=7), scene.server("b/1")
    gone.run()
    scene.run(60, mine)
    assert not mine.writes
    command = f"kubectl annotate --namespace treeplane-system lease treeplane-f {EPOCH}-"
    assert mine.lease.why().endswith(command)
    assert scene.target.lease is not None
    del scene.target.lease["metadata"]["annotations"][EPOCH]  # what the command does
    scene.run(6, mine)
    assert not mine.writes
    scene.run(15, mine)
    assert mine.writes


@pytest.mark.parametrize("certain", [True, False])
def test_a_restart_has_it_at_once_where_the_start_before_has_certainly_ended(scene: Scene, certain: bool) -> None:
    first = scene.server("a/1")
    scene.run(3, first)  # and kill -9
    second = scene.server("a/2", ended="a/1" if certain else "")
    second.run()
    assert second.writes == certain
    scene.run(15.25, second)
    assert second.writes


def test_a_restart_in_the_middle_of_a_wait_waits_anew(scene: Scene) -> None:
    """Whoever it was taken from still writes, for all that anybody knows."""
    old, new = scene.server("a/1"), scene.server("b/1", epoch=2)
    old.run()
    new.run()
    restarted = scene.server("b/2", epoch=2, ended="b/1")
    restarted.run()
    assert old.writes
    assert not restarted.writes
    scene.run(15.5, restarted)
    assert restarted.writes


def test_given_back_in_the_middle_of_a_wait_it_is_still_waited_for(scene: Scene) -> None:
    old, new, next_one = scene.server("a/1"), scene.server("b/1", epoch=2), scene.server("c/1", epoch=2)
    old.run()
    new.run()
    new.lease.end("the server is stopping")
    new.lease.release()
    next_one.run()
    assert old.writes
    assert not next_one.writes
    scene.run(15.5, next_one)
    assert next_one.writes
    scene.run(5, next_one)
    another = scene.server("c/2", epoch=2, ended="c/1")
    another.run()
    assert another.writes, "after the wait there is none any more"


def test_two_targets_that_are_one_cluster_share_it(scene: Scene) -> None:
    """Each renews; neither loses it for that."""
    one, other = scene.server("a/1"), scene.server("a/1")
    one.run()
    other.run()
    for _ in range(60):
        scene.run(1, one, other)
        assert one.writes
        assert other.writes
    assert one.lease.uid == other.lease.uid != ""


def test_a_lease_that_somebody_deleted_is_made_anew(scene: Scene) -> None:
    first = scene.server("a/1")
    first.run()
    scene.target.lease = None
    scene.run(6, first)
    assert first.writes
    assert scene.target.lease is not None


def test_a_target_that_refuses_every_write_of_it_is_not_asked_without_pause(scene: Scene) -> None:
    first = scene.server("a/1")
    first.run()
    first.link.replace = lambda _: first.link.create({})  # type: ignore[method-assign]  # always 409
    asked = scene.target.writes
    for _ in range(20):
        assert first.lease.step() >= 1.0
    assert scene.target.writes == asked
    assert not first.writes


def test_a_target_cannot_make_us_wait_for_ever_or_put_words_into_a_condition(scene: Scene) -> None:
    first = scene.server("a/1")
    first.run()
    assert scene.target.lease is not None
    scene.target.lease["spec"] |= {"leaseDurationSeconds": 10**9, "holderIdentity": "x\n  kubectl delete everything"}
    second = scene.server("b/1")
    scene.run(60, second)
    assert "kubectl" not in second.lease.why()
    scene.run(3600, second)
    assert second.writes


@pytest.mark.parametrize("spec", [None, [], {"holderIdentity": ["a"], "leaseTransitions": "x"}])
def test_a_lease_that_makes_no_sense(scene: Scene, spec: object) -> None:
    scene.target.store({"metadata": {"name": "treeplane-f", "annotations": {EPOCH: "-1"}}, "spec": spec})
    first = scene.server("a/1")
    scene.run(20, first)
    assert first.writes


@pytest.mark.parametrize("fleet", ["a" * 40, "0b5c3b0e-1f6e-4e0b-9f5c-6d0f0b1c2d3e"])
def test_a_fleets_id_names_its_lease(fleet: str) -> None:
    assert name_of(fleet) == f"treeplane-{fleet}"


def test_a_fleets_id_that_is_no_name_becomes_one() -> None:
    names = {name_of(text) for text in ("Ä/..", "", "A", "a_b", "x" * 500, "-a")}
    assert len(names) == 6
    assert all(len(n) <= 63 and n.removeprefix("treeplane-").isalnum() for n in names)


# -- histories --------------------------------------------------------------------------------------------------------


RESERVE = LeaseSettings().reserve


class Histories(RuleBasedStateMachine):
    """Servers that start, stop, are killed, cut off and taken over from, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.scene = Scene()
        self.running: dict[str, Server] = {}
        self.last = dict.fromkeys("abc", "")
        self.epoch = 1
        self.starts = 0
        self.arriving: dict[str, float] = {}
        """By start: until when a write of its may arrive."""

    @rule(name=st.sampled_from("abc"), takes_over=st.booleans(), certain=st.booleans(), behind=st.booleans())
    def starts_anew(self, name: str, takes_over: bool, certain: bool, behind: bool) -> None:
        """`takes_over`: with a later epoch than any. `behind`: with an earlier one, as a server that was cut off."""
        if name in self.running:
            return
        self.epoch += takes_over
        self._start(name, max(1, self.epoch - 1) if behind and not takes_over else self.epoch, certain)

    def _start(self, name: str, epoch: int, certain: bool) -> None:
        """`certain`: that the start before has ended."""
        self.starts += 1
        writer = f"{name}/{self.starts}"
        if certain:
            self.arriving.pop(self.last[name], None)
        self.running[name] = self.scene.server(writer, epoch, self.last[name] if certain else "")
        self.last[name] = writer
        self.running[name].run()

    @rule(name=st.sampled_from("abc"), clean=st.booleans())
    def ends(self, name: str, clean: bool) -> None:
        server = self.running.pop(name, None)
        if server is not None and clean:
            self.arriving.pop(server.contender.writer, None)
            server.lease.end("the server is stopping")
            had, lease = server.lease.uid, self.scene.target.lease
            with suppress(Expected):
                server.lease.release()
            if had and lease is not None and not (server.link.cut or server.link.deaf):
                now = self.scene.target.lease
                assert now is not None
                assert now["spec"].get("holderIdentity") != server.contender.writer

    @rule(name=st.sampled_from("abc"), clean=st.booleans(), certain=st.booleans())
    def is_restarted(self, name: str, clean: bool, certain: bool) -> None:
        """In the epoch that it had."""
        if name in self.running:
            epoch = self.running[name].contender.epoch
            self.ends(name, clean)
            self._start(name, epoch, certain)

    @rule(name=st.sampled_from("abc"), cut=st.booleans(), deaf=st.booleans(), slow=st.sampled_from([0.0, 0.5, 4.0]))
    def the_way_changes(self, name: str, cut: bool, deaf: bool, slow: float) -> None:
        if name in self.running:
            link = self.running[name].link
            link.cut, link.deaf, link.slow = cut, deaf, slow

    @rule(name=st.sampled_from("abc"), seconds=st.sampled_from([1.0, 4.0, 8.0, 12.0, 30.0]))
    def stands_still(self, name: str, seconds: float) -> None:
        """A process that gets no time, while the others do."""
        self._pass(seconds, without=name)

    @rule(seconds=st.sampled_from([0.5, 3.0, 7.0, 16.0]))
    def time_passes(self, seconds: float) -> None:
        self._pass(seconds)

    def _pass(self, seconds: float, without: str = "") -> None:
        until = self.scene.clock.now + seconds
        while self.scene.clock.now < until:
            for name in sorted(self.running):
                if name != without:
                    self.running[name].run()
                    self.one_at_most()
            self.scene.clock.now += 0.5
            self.one_at_most()

    @invariant()
    def one_at_most(self) -> None:
        """Who writes does so after everybody else has ended, and also what they sent and what then took the reserve to
        arrive."""
        now = self.scene.clock.now
        for name, server in self.running.items():
            if server.writes:
                self.arriving[server.contender.writer] = now + server.lease.left() + RESERVE
                others = {w: t for w, t in self.arriving.items() if not w.startswith(f"{name}/")}
                assert all(t <= now for t in others.values()), (now, server.contender, others)

    @precondition(lambda self: self.running)
    @rule()
    def who_lives_gets_it(self) -> None:
        """The latest epoch's server, once it reaches the target, and is the only one of that epoch that does."""
        for server in self.running.values():
            server.link.cut = server.link.deaf = False
            server.link.slow = 0.0
        held = self.scene.target.lease
        epochs = [s.contender.epoch for s in self.running.values()]
        if held is not None and int(held["metadata"]["annotations"][EPOCH]) > max(epochs):
            return  # a later one is away: nobody is to write in its place
        self._pass(32)
        assert [s for s in self.running.values() if s.writes and s.contender.epoch == max(epochs)]


Histories.TestCase.settings = settings(max_examples=250, stateful_step_count=30, deadline=None)
TestHistories = Histories.TestCase
