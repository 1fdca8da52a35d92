"""Of git's answer to a push no client hears that it is made before that is written down."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from apiserver.endpoints.pushreport import HeldReport, PushReport


def packet(data: bytes) -> bytes:
    return b"%04x" % (len(data) + 4) + data


REPORT = b"".join(
    [packet(b"unpack ok\n"), packet(b"ok refs/heads/main\n"), packet(b"ng refs/heads/b hook declined\n"), b"0000"]
)
WORDS = [b"Resolving deltas:  50%\rResolving deltas: 100%\r", b"done\ntreeplane: ", b"it is served\n\n"]
FIRST = b"".join([packet(b"\2" + WORDS[0]), b"0005\2", packet(b"\2" + WORDS[1])])
ANSWER = FIRST + packet(b"\1" + REPORT[:20]) + packet(b"\1" + REPORT[20:]) + packet(b"\2" + WORDS[2]) + b"0000"
READ = PushReport(
    {"refs/heads/main": "", "refs/heads/b": "hook declined"}, "done\ntreeplane: it is served"
)  # fmt: skip


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = [0, *sorted(place % len(data) for place in places), len(data)]
    return [data[begin:end] for begin, end in pairwise(at)]


@given(st.lists(st.integers(0, 1000), max_size=6))
def test_words_pass_and_the_report_does_not(places: list[int]) -> None:
    held = HeldReport(sideband=True)
    passed = b"".join(map(held.passing, cut(ANSWER, places)))
    assert held.read() == READ
    assert passed == FIRST + packet(b"\2" + WORDS[2])
    assert bytes(held.held) == packet(b"\1" + REPORT[:20]) + packet(b"\1" + REPORT[20:]) + b"0000"


@given(st.lists(st.integers(0, 1000), max_size=6))
def test_without_bands_nothing_passes(places: list[int]) -> None:
    held = HeldReport(sideband=False)
    assert b"".join(map(held.passing, cut(REPORT, places))) == b""
    assert held.read() == PushReport(READ.refs, "")
    assert bytes(held.held) == REPORT


@given(st.binary(max_size=200), st.lists(st.integers(0, 1000), max_size=6), st.booleans())
def test_nothing_is_lost_and_nothing_but_words_passes(data: bytes, places: list[int], sideband: bool) -> None:
    held = HeldReport(sideband=sideband)
    passed = b"".join(map(held.passing, cut(data, places) if data else []))
    held.read()
    assert len(passed) + len(held.held) == len(data)
    at = 0
    while at < len(passed):
        length = int(passed[at : at + 4], 16)
        assert passed[at + 4] == 2
        at += length
