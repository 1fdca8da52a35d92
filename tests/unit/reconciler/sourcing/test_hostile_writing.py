"""Remotes that fail, are silent, go on for ever or lie to who writes, at each step: it ends with words of ours, nothing
of it counts, and the next time goes well, on top of what is there and once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo
from support.gitserver import WRITING, GitAsked, Step
from support.writtensources import BRANCH, WrittenTenant

from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.followed import REASONS
from reconciler.sourcing.packets import line, packet
from reconciler.sourcing.settings import SourceBounds

USUAL = SourceBounds(connect=30.0)
QUICK: dict[Step, tuple[float, SourceBounds]] = {
    "refs to write": (1.5, replace(USUAL, look=0.6, quiet=0.4)),
    "push": (5.0, replace(USUAL, quiet=3.0)),
}
"""For what is silent or endless at a step: time for git itself to answer what is asked before it."""
SOON = 20.0
MARKUP = "\x1b]0;owned\x07<b>words</b>"
Answer = Callable[[GitAsked], object]


def spoiled(
    written: WrittenTenant, step: Step, answer: Answer, *, arrives: bool = False, quick: bool = False
) -> SourceFault:
    """The fault where a step is answered so. `arrives`: git did it all the same. `quick`: nothing else ends it."""
    written.push({"_summary.yaml": "one"})
    before, reached = written.head(), threading.Event()
    seconds, bounds = QUICK[step] if quick else (60.0, USUAL)

    def spoil(asked: GitAsked) -> bool:
        if asked.step != step:
            return False
        reached.set()
        answer(asked)
        return True

    written.server.spoil = spoil
    began = time.monotonic()
    with pytest.raises(SourceFault) as raised:
        written.push({"_summary.yaml": "two"}, seconds=seconds, bounds=bounds)
    assert time.monotonic() - began < SOON
    assert reached.wait(60), "the step that this is about"
    assert raised.value.reason in REASONS
    assert "words" not in str(raised.value)
    assert (written.head() == before) is not arrives
    written.server.spoil = lambda _: False
    written.push({"_summary.yaml": "two"})
    assert written.files() == {"_summary.yaml": "two"}
    assert len(written.history()) == 2, "what arrived though nobody said so is not written a second time"
    assert written.here.sent() is None
    return raised.value


@pytest.mark.parametrize("step", WRITING)
@pytest.mark.parametrize(
    ("status", "reason"),
    [(301, "NotARepository"), (302, "NotARepository"), (400, "NotARepository"), (401, "Unauthorized"),
     (403, "Unauthorized"), (404, "NotFound"), (413, "TooLarge"), (429, "Failing"), (500, "Failing")],
)  # fmt: skip
def test_an_answer_that_is_none(written: WrittenTenant, step: Step, status: int, reason: str) -> None:
    elsewhere = {"Location": written.server.url("b.git")}
    fault = spoiled(written, step, lambda asked: asked.reply(b"words", status, **elsewhere))
    assert fault.reason == reason
    assert ("push that branch" in fault.hint) is (reason in ("Unauthorized", "NotFound"))
    assert not any("b.git" in asked.repository for asked in written.server.asked)


@pytest.mark.parametrize("status", [401, 500, 502])
def test_a_push_that_arrived_and_is_answered_with_an_error(written: WrittenTenant, status: int) -> None:
    def answer(asked: GitAsked) -> None:
        asked.real()
        asked.reply(b"words", status)

    spoiled(written, "push", answer, arrives=True)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("step", WRITING)
def test_an_answer_that_ends_too_early(written: WrittenTenant, step: Step, part: float, announced: bool) -> None:
    def cut(asked: GitAsked) -> None:
        data = asked.real()
        kept = data[: int(len(data) * part)]
        asked.reply(kept, Content_Length=str(len(data) if announced else len(kept)), Connection="close")
        asked.handler.close_connection = True

    spoiled(written, step, cut, arrives=step == "push")


def silent(asked: GitAsked) -> None:
    asked.ended.wait()


def endless_head(asked: GitAsked) -> None:
    asked.handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not asked.ended.is_set():
        asked.handler.wfile.write(b"A: b\r\n" * 100)


def endless_words(asked: GitAsked) -> None:
    """What a hook prints."""
    kind = f"Content-Type: application/x-git-receive-pack-{asked.kind}"
    asked.handler.wfile.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    data = packet(b"\2" + b"words" * 200)
    while not asked.ended.is_set():
        asked.handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def closed(asked: GitAsked) -> None:
    asked.handler.close_connection = True
    asked.handler.connection.close()


@pytest.mark.parametrize("step", WRITING)
@pytest.mark.parametrize("answer", [silent, endless_head, endless_words, closed], ids=lambda answer: answer.__name__)
def test_one_that_is_silent_or_endless(written: WrittenTenant, step: Step, answer: Answer) -> None:
    spoiled(written, step, answer, quick=True)


def test_one_that_does_not_read_what_is_sent(written: WrittenTenant) -> None:
    written.server.unread = True
    with pytest.raises(SourceFault) as raised:
        written.push({str(n): "".join(chr(33 + (n * k * k) % 90) for k in range(20_000)) for n in range(300)}, 1.5)
    assert raised.value.reason == "TooSlow"


@pytest.mark.parametrize("step", WRITING)
def test_an_answer_that_is_not_gits(written: WrittenTenant, step: Step) -> None:
    fault = spoiled(written, step, lambda asked: asked.reply(b"<html>words</html>", Content_Type="text/html"))
    assert fault.reason == "NotARepository"


@pytest.mark.parametrize("step", WRITING)
@pytest.mark.parametrize(
    "data",
    [b"", b"0000", b"zzzz", b"0003", b"fff9", line(f"ERR {MARKUP}"), packet(b"\1") + b"0000",
     packet(b"\1zzzz") + b"0000", packet(b"\3" + MARKUP.encode()), packet(b"\7x") + b"0000",
     packet(b"\1" + line("unpack ok")) + b"0000", packet(b"\1" + line("words") + b"0000") + b"0000",
     packet(b"\1" + b"0000") + b"0000"],
)  # fmt: skip
def test_packets_that_are_none(written: WrittenTenant, step: Step, data: bytes) -> None:
    spoiled(written, step, lambda asked: asked.reply(data))


def report(*lines: str) -> bytes:
    return packet(b"\1" + b"".join(line(each) for each in lines) + b"0000") + b"0000"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [((f"unpack {MARKUP}", f"ng refs/heads/{BRANCH} unpacker error"), "Refused"),
     (("unpack ok", f"ng refs/heads/{BRANCH} {MARKUP}"), "Refused"),
     (("unpack ok", f"ng refs/heads/{BRANCH}"), "Refused"),
     (("unpack ok", "ok refs/heads/main"), "Unusable"),
     (("unpack ok", f"ok refs/heads/{BRANCH}-other"), "Unusable"),
     (("unpack ok", MARKUP), "Unusable")],
)  # fmt: skip
def test_a_report_that_says_no_or_nothing(written: WrittenTenant, lines: tuple[str, ...], reason: str) -> None:
    fault = spoiled(written, "push", lambda asked: asked.reply(report(*lines)))
    assert fault.reason == reason
    assert str(fault).isprintable()


@pytest.mark.parametrize(("channel", "many", "reason"), [(b"\2", 1300, "TooLarge"), (b"\1", 100, "Unusable")])
def test_what_hooks_print_and_what_is_reported_have_an_end(
    written: WrittenTenant, channel: bytes, many: int, reason: str
) -> None:
    much = packet(channel + b"words" * 200) * many
    assert spoiled(written, "push", lambda asked: asked.reply(much + report("unpack ok"))).reason == reason


@pytest.mark.parametrize("head", ["0" * 40, "f" * 39, "F" * 40, "--upload-pack=x", "a" * 64, "HEAD", "../../config"])
def test_what_is_no_id_is_none(written: WrittenTenant, head: str) -> None:
    lie = line(f"{head} refs/heads/{BRANCH}\0report-status side-band-64k") + b"0000"
    answer = line("# service=git-receive-pack") + b"0000" + lie
    assert spoiled(written, "refs to write", lambda asked: asked.reply(answer)).reason == "Unusable"


@pytest.mark.parametrize("abilities", ["", "side-band-64k", "report-status object-format=sha256"])
def test_a_server_that_can_too_little_or_has_other_ids(written: WrittenTenant, abilities: str) -> None:
    lie = line(f"{'a' * 40} refs/heads/{BRANCH}\0{abilities}") + b"0000"
    answer = line("# service=git-receive-pack") + b"0000" + lie
    assert spoiled(written, "refs to write", lambda asked: asked.reply(answer)).reason == "NotARepository"


def test_a_head_that_is_a_lie_is_refused_by_who_told_it(written: WrittenTenant) -> None:
    """A commit on top of one that is not there: whoever serves the branch does not take it."""
    written.push({"_summary.yaml": "one"})

    def lie(asked: GitAsked) -> bool:
        if asked.step == "refs to write":
            asked.reply(asked.real().replace((written.head() or "").encode(), b"a" * 40))
        return asked.step == "refs to write"

    written.server.spoil = lie
    with pytest.raises(SourceFault) as raised:
        written.push({"_summary.yaml": "two"})
    assert raised.value.reason == "Refused"
    assert written.files() == {"_summary.yaml": "one"}


def test_a_branch_that_moves_meanwhile_is_gone_on_from(written: WrittenTenant) -> None:
    written.push({"_summary.yaml": "one"})
    moved = list[str]()

    def move(asked: GitAsked) -> bool:
        if asked.step == "push" and not moved:
            moved.append(FleetRepo(written.repository.path, BRANCH).commit({"a": "a"}, "By hand"))
        return False

    written.server.spoil = move
    with pytest.raises(SourceFault) as raised:
        written.push({"_summary.yaml": "two"})
    assert raised.value.reason == "Refused"
    written.push({"_summary.yaml": "two"})
    assert written.history() == ["Status", "By hand", "Status"]


def test_a_hook_that_refuses_is_told_in_our_words(written: WrittenTenant) -> None:
    hook = written.repository.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nprintf '%s' '{MARKUP}' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(SourceFault) as raised:
        written.push({"_summary.yaml": "one"})
    assert raised.value.reason == "Refused"
    assert "protected, or a hook" in raised.value.what
    assert "words" not in str(raised.value)
    hook.unlink()
    written.push({"_summary.yaml": "one"})
    assert written.files() == {"_summary.yaml": "one"}


def test_a_server_without_channels_is_written_to(written: WrittenTenant) -> None:
    bodies = list[bytes]()

    def little(asked: GitAsked) -> bool:
        if asked.step == "refs to write":
            asked.reply(asked.real().replace(b"side-band-64k", b"x" * 13))
            return True
        bodies.append(asked.body)
        return False

    written.server.spoil = little
    written.push({"_summary.yaml": "one"})
    assert written.files() == {"_summary.yaml": "one"}
    assert b"side-band" not in bodies[0].partition(b"PACK")[0]


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
def test_whatever_is_reported_is_a_report_or_a_fault(written: WrittenTenant, data: bytes) -> None:
    def answer(asked: GitAsked) -> bool:
        if asked.step == "push":
            asked.reply(data)
        return asked.step == "push"

    written.server.spoil = answer
    with pytest.raises(SourceFault):
        written.push({"_summary.yaml": str(time.monotonic())})
    assert written.head() is None
