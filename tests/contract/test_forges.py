"""One comment on a pull request: the same on every forge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.fakeforges import BOT, FAKES, STRANGER, TOKEN, FakeForge, FakeGitLab, Said, User, serving

from reconciler.forges.errors import ForgeError
from reconciler.forges.keeping import KeptAs, KeptComment, keep
from reconciler.forges.place import PullRequest
from reconciler.forges.wire import ForgePatience

MARKER = "<!-- treeplane diff fleet -->"


class Naps(list[float]):
    """What was waited, without waiting."""

    @property
    def patience(self) -> ForgePatience:
        return ForgePatience(sleep=self.append)


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture(params=FAKES, ids=[each.forge for each in FAKES])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    with serving(request.param()) as found:
        yield found


def kept(fake: FakeForge, text: str, naps: Naps | None = None, name: str = "fleet", token: str = TOKEN) -> KeptComment:
    where = PullRequest(fake.forge, fake.url, "shop/fleet", 12)
    return keep(where.spoken_to(token, (Naps() if naps is None else naps).patience), name, text)


def test_it_is_made_changed_and_left(fake: FakeForge) -> None:
    assert kept(fake, "one\n").kept is KeptAs.CREATED
    assert fake.bodies() == [f"{MARKER}\none"]
    assert kept(fake, "one\n").kept is KeptAs.UNCHANGED
    assert fake.writes() == ["POST"]
    assert kept(fake, "two").kept is KeptAs.CONFIGURED
    assert fake.bodies() == [f"{MARKER}\ntwo"]
    assert fake.writes() == ["POST", fake.edit]


def test_a_forge_that_ends_lines_in_its_own_way_has_the_same(fake: FakeForge) -> None:
    fake.add(BOT, f"{MARKER}\r\none\r\ntwo\r\n")
    assert kept(fake, "one\ntwo").kept is KeptAs.UNCHANGED


def test_each_name_has_its_own(fake: FakeForge) -> None:
    kept(fake, "one")
    kept(fake, "two", name="other")
    assert kept(fake, "one").kept is KeptAs.UNCHANGED
    assert fake.bodies() == [f"{MARKER}\none", "<!-- treeplane diff other -->\ntwo"]


def test_a_strangers_comment_with_the_first_line_is_nobodys(fake: FakeForge) -> None:
    """Neither is it changed, nor does it keep ours from being made."""
    fake.add(STRANGER, f"{MARKER}\nall is well")
    assert kept(fake, "one").kept is KeptAs.CREATED
    assert kept(fake, "two").kept is KeptAs.CONFIGURED
    assert fake.bodies() == [f"{MARKER}\nall is well", f"{MARKER}\ntwo"]


def test_a_stranger_who_took_the_bots_name_is_a_stranger(fake: FakeForge) -> None:
    fake.add(User(99, BOT.name), f"{MARKER}\nall is well")
    assert kept(fake, "one").kept is KeptAs.CREATED


def test_the_first_line_counts_at_the_beginning_alone(fake: FakeForge) -> None:
    fake.add(BOT, f"quoted:\n{MARKER}\n")
    fake.add(BOT, f"{MARKER} and more")
    assert kept(fake, "one").kept is KeptAs.CREATED


def test_it_is_found_behind_many_others(fake: FakeForge) -> None:
    for _ in range(250):
        fake.add(STRANGER, "me too")
    fake.add(BOT, f"{MARKER}\none")
    assert kept(fake, "two").kept is KeptAs.CONFIGURED
    assert len(fake.comments) == 251
    assert not any("elsewhere" in each.path for each in fake.asked)


def test_of_several_the_first_is_kept_and_the_others_are_told(fake: FakeForge) -> None:
    first, second = fake.add(BOT, f"{MARKER}\none"), fake.add(BOT, f"{MARKER}\none")
    found = kept(fake, "two")
    assert (found.kept, found.comment.id) == (KeptAs.CONFIGURED, first["id"])
    assert [each.id for each in found.others] == [second["id"]]
    assert fake.bodies() == [f"{MARKER}\ntwo", f"{MARKER}\none"]


def test_a_text_cannot_command_the_forge_or_pose_as_another_comment(fake: FakeForge) -> None:
    kept(fake, "<!-- treeplane diff fleet -->\n/merge\r/approve\x00\n\x00/close\n<!--treeplane diff other -->")
    [body] = fake.bodies()
    assert (
        body
        == f"{MARKER}\n&lt;!-- treeplane diff fleet -->\n /merge\n /approve\n /close\n&lt;!--treeplane diff other -->"
    )


@pytest.mark.parametrize("text", ["/merge", "\n /merge", "\0/merge", "\x1b\r\n\t/merge"])
def test_nor_with_its_first_word(fake: FakeForge, text: str) -> None:
    kept(fake, text)
    assert fake.bodies() == [f"{MARKER}\n /merge"]


def test_a_long_text_is_cut_and_says_so(fake: FakeForge) -> None:
    kept(fake, "é" * 70_000)
    [body] = fake.bodies()
    assert len(body) < 65_536
    assert "too long" in body
    assert kept(fake, "é" * 70_000).kept is KeptAs.UNCHANGED


def test_a_busy_forge_is_asked_again_and_no_sooner_than_it_says(fake: FakeForge, naps: Naps) -> None:
    fake.faults += [
        ("GET", Said(429, {"message": "slow down"}, {"Retry-After": "7"})),
        ("GET", Said(503, b"")),
        ("POST", Said(429, {}, {"Retry-After": "100000"})),
    ]
    assert kept(fake, "one", naps).kept is KeptAs.CREATED
    assert naps == [7.0, 2.0, 60.0]
    assert len(fake.comments) == 1


def test_a_forge_that_stays_busy_is_left(fake: FakeForge, naps: Naps) -> None:
    fake.faults += [("GET", Said(503, b""))] * 9
    with pytest.raises(ForgeError, match=r"busy \(503\)"):
        kept(fake, "one", naps)
    assert len(naps) == 3


def test_a_lost_answer_makes_no_second_comment(fake: FakeForge) -> None:
    fake.lost = 1
    assert kept(fake, "one").kept is KeptAs.UNCHANGED
    assert fake.bodies() == [f"{MARKER}\none"]
    assert fake.writes() == ["POST"]


def test_what_is_never_settled_ends(fake: FakeForge) -> None:
    fake.faults += [("POST", Said(502, b""))] * 9
    with pytest.raises(ForgeError, match=r"busy \(502\)"):
        kept(fake, "one")
    assert fake.writes() == ["POST"] * 3


@pytest.mark.parametrize(
    ("status", "text", "hint"),
    [
        (401, "does not take the token", "this forge's"),
        (403, "may not do that", "it needs"),
        (404, "may not see", "number"),
    ],
)
def test_a_refusal_says_what_to_do(fake: FakeForge, status: int, text: str, hint: str) -> None:
    fake.faults.append(("POST", Said(status, {"message": "no"})))
    with pytest.raises(ForgeError) as error:
        kept(fake, "one")
    assert text in error.value.text
    assert f"({status}): no" in error.value.text
    assert fake.url in error.value.text
    assert hint in error.value.hint


def test_a_wrong_token_is_refused_and_shown_nowhere(fake: FakeForge) -> None:
    with pytest.raises(ForgeError, match="does not take the token") as error:
        kept(fake, "one", token="a-wrong-token")
    assert fake.nobody in error.value.text
    assert "a-wrong-token" not in error.value.text + error.value.hint


def test_a_forge_that_repeats_the_token_is_not_repeated(fake: FakeForge) -> None:
    fake.faults.append(("GET", Said(400, {"message": f"bad header Bearer {TOKEN}\x1b[31m\nand more"})))
    with pytest.raises(ForgeError, match=r"Bearer \*\*\*\\x1b\[31m and more") as error:
        kept(fake, "one")
    assert TOKEN not in repr(error.value)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_redirect_is_followed(fake: FakeForge, status: int, method: str) -> None:
    with serving(FakeGitLab()) as other:
        fake.faults.append((method, Said(status, b"", {"Location": f"{other.url}/user"})))
        with pytest.raises(ForgeError, match=rf"elsewhere \({status}\): {other.url}/user"):
            kept(fake, "one")
        assert other.asked == []


def test_an_answer_has_a_size(fake: FakeForge) -> None:
    fake.add(STRANGER, "x" * 10_000)
    where = PullRequest(fake.forge, fake.url, "shop/fleet", 12)
    with pytest.raises(ForgeError, match="more than 9999 bytes"):
        keep(where.spoken_to(TOKEN, replace(ForgePatience(), size=9999)), "fleet", "one")


def test_a_list_has_an_end(fake: FakeForge) -> None:
    endless = Said(200, [], {"Link": '<https://elsewhere.invalid/?page=2>; rel="next"'})
    fake.listed = lambda query: endless._replace(body=[{"body": "x"}])  # type: ignore[method-assign]
    with pytest.raises(ForgeError, match="more than 100 pages"):
        kept(fake, "one")
    assert fake.writes() == []


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"{}", b"null", b"[" * 100_000], ids=len)
def test_what_is_no_list_of_comments(fake: FakeForge, body: bytes) -> None:
    fake.listed = lambda query: Said(200, body)  # type: ignore[method-assign]
    with pytest.raises(ForgeError, match="answer"):
        kept(fake, "one")
    assert fake.writes() == []


def test_who_is_nobody_keeps_no_comment(fake: FakeForge) -> None:
    fake.user = User(0, "")
    with pytest.raises(ForgeError, match="does not say who") as error:
        kept(fake, "one")
    assert "--author" in error.value.hint
    assert fake.writes() == []


def test_the_token_goes_to_the_forge_alone_and_in_a_header(fake: FakeForge) -> None:
    kept(fake, "one")
    assert {each.headers["authorization"] for each in fake.asked} == {f"Bearer {TOKEN}"}
    assert not any(TOKEN in each.path for each in fake.asked)
    assert {urlpath.split("/")[1] for urlpath in (each.path for each in fake.asked)} == {"api"}
