"""Remotes that fail, are silent, go on for ever or lie, at each step: the visit ends with words, nothing of it counts,
nothing is lost, and the next one goes well."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.gitserver import STEPS, GitAsked, Step
from support.packs import Objects
from support.sourcevisits import Tenant

from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.followed import REASONS
from reconciler.sourcing.kept import TRACKED
from reconciler.sourcing.packets import Packets, line
from reconciler.sourcing.settings import FollowSettings, SourceBounds


class VisitBounds(NamedTuple):
    seconds: float
    settings: FollowSettings


BOUNDS = SourceBounds(connect=30.0, disk=20_000_000)
USUAL = VisitBounds(60.0, FollowSettings(bounds=BOUNDS))
QUICK: dict[Step, VisitBounds] = {
    "refs": VisitBounds(1.5, FollowSettings(bounds=replace(BOUNDS, look=0.6, quiet=0.4))),
    "ls-refs": VisitBounds(1.5, FollowSettings(bounds=replace(BOUNDS, look=0.6, quiet=0.4))),
    "fetch": VisitBounds(5.0, FollowSettings(bounds=replace(BOUNDS, quiet=3.0))),
}
"""For what is silent or endless at a step: time for git itself to answer what is asked before it."""
SOON = 20.0
"""Seconds within which a visit is over that fails or whose time is, and git's programs with it."""
Answer = Callable[[GitAsked], None]


def spoiled(tenant: Tenant, step: Step, answer: Answer, bounds: VisitBounds = USUAL) -> SourceFault:
    """The fault of a visit that is answered so at that step; what was there before is there still, and what is new
    comes with the next visit."""
    before = tenant.visit().head
    tenant.repository.commit({"app/web.yaml": str(time.monotonic()), "app/more.yaml": "more"})
    tenant.second = tenant.second and step != "refs"
    reached = threading.Event()

    def spoil(asked: GitAsked) -> bool:
        if asked.step != step:
            return False
        reached.set()
        answer(asked)
        return True

    tenant.server.spoil = spoil
    began = time.monotonic()
    with pytest.raises(SourceFault) as raised:
        tenant.visit(settings=bounds.settings, seconds=bounds.seconds)
    assert time.monotonic() - began < SOON
    assert reached.wait(60), "the step that this is about"
    assert raised.value.reason in REASONS
    assert tenant.here.ref(TRACKED + "main") == before
    assert tenant.left_over() == []
    tenant.server.spoil = lambda _: False
    tenant.second = False
    assert tenant.visit().head == tenant.repository.head
    return raised.value


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    ("status", "reason"),
    [(301, "NotARepository"), (302, "NotARepository"), (400, "NotARepository"), (401, "Unauthorized"),
     (403, "Unauthorized"), (404, "NotFound"), (429, "Failing"), (500, "Failing"), (503, "Failing")],
)  # fmt: skip
def test_an_answer_that_is_none(tenant: Tenant, step: Step, status: int, reason: str) -> None:
    elsewhere = {"Location": tenant.server.url("b.git")}
    assert spoiled(tenant, step, lambda asked: asked.reply(b"words", status, **elsewhere)).reason == reason


@pytest.mark.parametrize("step", ["refs", "fetch"])
@pytest.mark.parametrize("status", [500, 503])
def test_nor_is_it_one_of_the_first_version(tenant: Tenant, step: Step, status: int) -> None:
    tenant.server.old = True
    assert spoiled(tenant, step, lambda asked: asked.reply(b"words", status)).reason == "Failing"


def closed(asked: GitAsked) -> None:
    asked.handler.close_connection = True
    asked.handler.connection.close()


@pytest.mark.parametrize("fail", [lambda asked: asked.reply(b"", 500), closed])
def test_what_was_lost_is_asked_for_again_where_the_host_failed_meanwhile(tenant: Tenant, fail: Answer) -> None:
    """A disk was lost, and the branch rewritten: the head comes, and the host fails when it is asked for what was
    served. One that says no is asked once."""
    first = tenant.repository.head
    served = tenant.repository.commit({"app/web.yaml": "served"})
    tenant.repository.commit({"app/web.yaml": "rewritten"}, parent=first)

    def spoil(asked: GitAsked) -> bool:
        lost = served.encode() in asked.body
        if lost:
            fail(asked)
        return lost

    tenant.server.spoil = spoil
    found = tenant.visit(keep=frozenset({served}))
    assert (found.head, found.refused) == (tenant.repository.head, frozenset())
    assert not tenant.here.has(served)
    tenant.server.spoil = lambda _: False
    assert tenant.visit(keep=frozenset({served})).refused == frozenset()
    assert tenant.here.has(served)


def silent(asked: GitAsked) -> None:
    asked.ended.wait()


def silent_after_the_head(asked: GitAsked) -> None:
    asked.handler.send_response(200)
    asked.handler.send_header("Content-Type", f"application/x-git-upload-pack-{asked.kind}")
    asked.handler.send_header("Content-Length", "100000")
    asked.handler.end_headers()
    asked.ended.wait()


def drop_by_drop(asked: GitAsked) -> None:
    for each in b"HTTP/1.1 200 OK\r\nContent-Type: " + b"x" * 1000:
        asked.handler.wfile.write(bytes([each]))
        if asked.ended.wait(0.1):
            return


def endless_head(asked: GitAsked) -> None:
    asked.handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    while not asked.ended.is_set():
        asked.handler.wfile.write(b"A: b\r\n" * 100)


def endless_continue(asked: GitAsked) -> None:
    while not asked.ended.is_set():
        asked.handler.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


def endless_chunks(asked: GitAsked) -> None:
    kind = f"Content-Type: application/x-git-upload-pack-{asked.kind}"
    asked.handler.wfile.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    begin = b"000dpackfile\n" if asked.step == "fetch" else b""
    asked.handler.wfile.write(f"{len(begin):x}\r\n".encode() + begin + b"\r\n" if begin else b"")
    packet = b"fff0\2" + b"x" * 65515 if asked.step == "fetch" else b"0008abc\n"
    while not asked.ended.is_set():
        asked.handler.wfile.write(f"{len(packet):x}\r\n".encode() + packet + b"\r\n")


def endless_trailers(asked: GitAsked) -> None:
    kind = f"Content-Type: application/x-git-upload-pack-{asked.kind}"
    asked.handler.wfile.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    data = asked.real()
    asked.handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n0\r\n")
    while not asked.ended.is_set():
        asked.handler.wfile.write(b"A: b\r\n" * 100)


def chunks_of_a_byte(asked: GitAsked) -> None:
    kind = f"Content-Type: application/x-git-upload-pack-{asked.kind}"
    asked.handler.wfile.write(f"HTTP/1.1 200 OK\r\n{kind}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
    packet = b"000dpackfile\n" if asked.step == "fetch" else b""
    while not asked.ended.is_set():
        packet += (b"fff0\2" + b"x" * 65515) if asked.step == "fetch" else b"0008abc\n" * 1000
        asked.handler.wfile.write(b"".join(b"1\r\n%c\r\n" % each for each in packet))
        packet = b""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "answer",
    [silent, silent_after_the_head, drop_by_drop, endless_head, endless_continue, endless_chunks,
     endless_trailers, chunks_of_a_byte, closed],
    ids=lambda answer: answer.__name__,
)  # fmt: skip
def test_one_that_is_silent_or_endless(tenant: Tenant, step: Step, answer: Answer) -> None:
    spoiled(tenant, step, answer, QUICK[step])


@pytest.mark.parametrize("answer", [endless_continue, endless_trailers, chunks_of_a_byte], ids=lambda a: a.__name__)
def test_answers_in_a_million_pieces_have_a_bound_of_cpu(tenant: Tenant, answer: Answer) -> None:
    """Long before that of time."""
    tenant.server.spoil = lambda asked: asked.step == "fetch" and answer(asked) is None
    began = time.monotonic()
    with pytest.raises(SourceFault) as raised:
        tenant.visit(settings=FollowSettings(bounds=SourceBounds(cpu=0.3)))
    assert raised.value.reason == "TooSlow"
    assert time.monotonic() - began < SOON * 2


@pytest.mark.parametrize("step", STEPS)
def test_an_answer_that_is_not_gits(tenant: Tenant, step: Step) -> None:
    def page(asked: GitAsked) -> None:
        asked.reply(b"<html>log in</html>", Content_Type="text/html")

    assert spoiled(tenant, step, page).reason == "NotARepository"


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize(
    "data", [b"", b"0000", b"zzzz", b"0003", b"fff9", b"0009ERR x", b"001e# service=git-upload-pack\n"]
)
def test_packets_that_are_none(tenant: Tenant, step: Step, data: bytes) -> None:
    """Nothing but an end is an answer about refs: there are none."""
    spoiled(tenant, step, lambda asked: asked.reply(data))


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("announced", [False, True])
def test_an_answer_that_ends_too_early(tenant: Tenant, step: Step, part: float, announced: bool) -> None:
    """With the length of all of it, or of what comes."""

    def cut(asked: GitAsked) -> None:
        data = asked.real()
        kept = data[: min(int(len(data) * part), len(data) - 5)]
        asked.reply(kept, Content_Length=str(len(data) if announced else len(kept)), Connection="close")
        asked.handler.close_connection = True

    spoiled(tenant, step, cut)


def packed(asked: GitAsked, pack: bytes) -> None:
    pieces = [pack[at : at + 60_000] for at in range(0, len(pack), 60_000)]
    asked.reply(line("packfile") + b"".join(b"%04x\1" % (len(p) + 5) + p for p in pieces) + b"0000")


def lies(tenant: Tenant, head: str, pack: bytes) -> SourceFault:
    """The branch is said to be at `head`, and that pack is what comes of it."""
    before = tenant.visit().head

    def lie(asked: GitAsked) -> bool:
        if asked.step == "ls-refs":
            asked.reply(line(f"{head} refs/heads/main") + b"0000")
        else:
            packed(asked, pack)
        return True

    tenant.server.spoil = lie
    with pytest.raises(SourceFault) as raised:
        tenant.visit()
    assert tenant.here.ref(TRACKED + "main") == before
    assert tenant.left_over() == []
    tenant.server.spoil = lambda _: False
    tenant.second = False
    tenant.repository.commit({"app/web.yaml": "next"})
    assert tenant.visit().head == tenant.repository.head
    return raised.value


def test_a_pack_without_what_it_is_for(tenant: Tenant) -> None:
    objects = Objects()
    blob = objects.blob("text")
    tree = objects.tree([(b"100644", "a", blob)])
    commit = objects.commit(tree)
    for lacking in ({commit}, {tree}, {blob}, {commit, tree, blob}):
        assert lies(tenant, commit, objects.pack(objects.made.keys() - lacking)).reason == "Unusable"
        assert not tenant.here.has(commit)


def test_what_is_merely_here_is_not_whole(tenant: Tenant) -> None:
    """A commit without its tree, which came some other way, and is said to be the head."""
    head = tenant.visit().head
    objects = Objects()
    lacking = objects.commit(objects.tree([(b"100644", "a", "1" * 40)]), head)
    objects.store(tenant.here.git_dir, [lacking])

    def lie(asked: GitAsked) -> bool:
        if asked.step == "ls-refs":
            asked.reply(line(f"{lacking} refs/heads/main") + b"0000")
        return asked.step == "ls-refs"

    tenant.server.spoil = lie
    with pytest.raises(SourceFault):
        tenant.visit()
    assert tenant.here.has(lacking)
    assert tenant.here.ref(TRACKED + "main") == head
    assert tenant.server.steps[-1] == "fetch"


@pytest.mark.parametrize("kind", ["blob", "tree", "tag"])
def test_a_branch_that_leads_to_no_commit(tenant: Tenant, kind: str) -> None:
    objects = Objects()
    blob = objects.blob("text")
    tree = objects.tree([(b"100644", "a", blob)])
    heads = {"blob": blob, "tree": tree, "tag": objects.tag(objects.commit(tree), "commit")}
    assert lies(tenant, heads[kind], objects.pack(objects.made)).reason == "Unusable"


@pytest.mark.parametrize("head", ["0" * 40, "f" * 39, "F" * 40, "--upload-pack=x", "a" * 64, "HEAD", "../../config"])
def test_what_is_no_id_is_none(tenant: Tenant, head: str) -> None:
    assert lies(tenant, head, b"").reason == "Unusable"


def test_another_branch_than_was_asked_for(tenant: Tenant) -> None:
    def other(asked: GitAsked) -> None:
        asked.reply(line(f"{tenant.repository.head} refs/heads/main-other") + b"0000")

    assert spoiled(tenant, "ls-refs", other).reason == "BranchNotFound"


def test_a_pack_that_announces_more_than_may_come(tenant: Tenant) -> None:
    def many(asked: GitAsked) -> None:
        packed(asked, b"PACK\0\0\0\2\xff\xff\xff\xff" + b"x" * 100)

    assert spoiled(tenant, "fetch", many).reason == "TooLarge"


def test_a_server_that_gives_no_longer_what_it_said(tenant: Tenant) -> None:
    def gone(asked: GitAsked) -> None:
        asked.reply(line("ERR upload-pack: not our ref <b>markup</b>"))

    fault = spoiled(tenant, "fetch", gone)
    assert fault.reason == "Failing"
    assert "markup" not in str(fault)


def test_what_is_offered_elsewhere_is_not_gone_for(tenant: Tenant) -> None:
    def elsewhere(asked: GitAsked) -> None:
        offer = line("packfile-uris") + line(f"{'a' * 40} {tenant.server.url('b.git')}/pack")
        asked.reply(offer + b"0001" + line("packfile") + b"0000")

    assert spoiled(tenant, "fetch", elsewhere).reason == "Unusable"
    assert not any("b.git" in asked.repository for asked in tenant.server.asked)


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_comes_as_packets_is_packets_or_a_fault(data: bytes) -> None:
    rest = [data]

    def read(size: int) -> bytes:
        found, rest[0] = rest[0][:size], rest[0][size:]
        return found

    packets = Packets(read, 150)
    total = 0
    try:
        while True:
            total += len(packets.next() or b"")
    except SourceFault:
        assert total <= 150


def test_a_server_of_the_first_version_that_can_little_is_asked_for_no_more(tenant: Tenant) -> None:
    """It offers neither deltas by offset nor thin packs."""
    tenant.server.old = True
    asked_for = list[bytes]()

    def little(asked: GitAsked) -> bool:
        if asked.step == "refs":
            data = asked.real()
            for ability in (b"ofs-delta", b"thin-pack"):
                data = data.replace(ability, b"x" * len(ability))
            asked.reply(data)
        else:
            asked_for.append(asked.body)
        return asked.step == "refs"

    tenant.server.spoil = little
    assert tenant.visit().head == tenant.repository.head
    assert b"side-band-64k no-progress" in asked_for[0]
    assert b"delta" not in asked_for[0] and b"thin" not in asked_for[0]
