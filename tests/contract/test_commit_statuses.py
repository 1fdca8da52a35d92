"""A commit's status: the same on every forge."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.fakeforges import FAKES, TOKEN, FakeForge, FakeGitLab, Said, serving

from reconciler.forges.commitstatus import LONGEST_DESCRIPTION, CommitStatus, StatusForge, context_of, described
from reconciler.forges.errors import ForgeError, MaybeDone, NotSaid
from reconciler.forges.place import StatusPlace
from reconciler.forges.wire import ForgePatience

COMMIT = "c0ffee" + "0" * 34
GOOD = CommitStatus("treeplane/root:a", True, "configured", "https://status.example.org/x")
BAD = CommitStatus("treeplane/root:a", False, "app.yaml:3: no such field")


@pytest.fixture(params=FAKES, ids=[each.forge for each in FAKES])
def fake(request: pytest.FixtureRequest) -> Iterator[FakeForge]:
    with serving(request.param()) as found:
        yield found


def spoken(fake: FakeForge, token: str = TOKEN, naps: list[float] | None = None) -> StatusForge:
    patience = ForgePatience(sleep=(naps if naps is not None else []).append)
    return StatusPlace(fake.forge, fake.url, "shop/fleet").spoken_to(token, patience)


def test_it_is_said_and_turns(fake: FakeForge) -> None:
    forge = spoken(fake)
    forge.state(COMMIT, BAD)
    assert fake.newest(COMMIT) == {"treeplane/root:a": fake.bad}
    forge.state(COMMIT, GOOD)
    assert fake.newest(COMMIT) == {"treeplane/root:a": "success"}
    [first, second] = [sent for _, sent in fake.stated]
    assert first["description"] == "app.yaml:3: no such field"
    assert "target_url" not in first
    assert second["target_url"] == "https://status.example.org/x"


def test_one_whose_answer_is_lost_is_said_again(fake: FakeForge) -> None:
    """Twice the same is as good as once."""
    naps: list[float] = []
    fake.faults += [("POST", Said(502, b"")), ("POST", Said(429, {}, {"Retry-After": "7"}))]
    spoken(fake, naps=naps).state(COMMIT, GOOD)
    assert naps == [1.0, 7.0]
    assert len(fake.stated) == 1


@pytest.mark.parametrize(("status", "after"), [(429, 30.0), (503, 30.0), (404, 0.0), (500, 0.0)])
def test_what_fails_says_how_and_how_long(fake: FakeForge, status: int, after: float) -> None:
    fake.faults += [("POST", Said(status, {}, {"Retry-After": "30"} if after else {}))] * 9
    with pytest.raises(ForgeError) as error:
        spoken(fake).state(COMMIT, GOOD)
    assert (error.value.status, error.value.after) == (status, after)
    assert not isinstance(error.value, MaybeDone)


def test_who_lacks_the_right_is_told_which(fake: FakeForge) -> None:
    fake.faults.append(("POST", Said(403, {"message": "no"})))
    with pytest.raises(ForgeError) as error:
        spoken(fake).state(COMMIT, GOOD)
    assert any(word in error.value.hint for word in ("statuses: write", "Developer", "write:repository"))


def test_the_token_of_a_status_goes_nowhere_else(fake: FakeForge) -> None:
    with serving(FakeGitLab()) as other:
        fake.faults.append(("POST", Said(307, b"", {"Location": f"{other.url}/statuses"})))
        with pytest.raises(ForgeError, match=r"elsewhere \(307\)"):
            spoken(fake).state(COMMIT, GOOD)
        assert other.asked == []
    with pytest.raises(ForgeError) as wrong:
        spoken(fake, token="a-wrong-token").state(COMMIT, GOOD)
    assert "a-wrong-token" not in wrong.value.text + wrong.value.hint
    assert not any(TOKEN in each.path for each in fake.asked)


def test_hostile_words_fit_every_forge(fake: FakeForge) -> None:
    """The fake refuses what is too long."""
    path = "root:" + ":".join("x" * 60 for _ in range(20))
    text = "a.yaml:1: \x00\x1b[31m\r\nX-Header: 1\u2028\u202e evil \U0001f600" + "é" * 500
    forge = spoken(fake)
    forge.state(COMMIT, CommitStatus(context_of(path), False, described(text)))
    [(_, sent)] = fake.stated
    assert sent["description"].isprintable()
    assert sent["description"].startswith("a.yaml:1: [31m X-Header: 1 evil \ufffdé")
    assert len(sent["description"]) == LONGEST_DESCRIPTION


def test_no_two_workspaces_share_a_context() -> None:
    long = "root:" + "y" * 300
    assert context_of("root:a") == "treeplane/root:a"
    found = {context_of(path) for path in (long, f"{long}z", long[:260], long[:245], long[:244])}
    assert len(found) == 5
    assert max(map(len, found)) == 255


@pytest.mark.parametrize(
    ("forge", "url", "repository"),
    [
        ("gitea", "", "shop/fleet"),
        ("gitea", "http://git.example.org", "shop/fleet"),
        ("github", "", "shop"),
        ("github", "", "shop/../fleet"),
        ("gitlab", "https://bot:secret@gitlab.example.org", "shop/fleet"),
    ],
)
def test_what_is_no_place_is_refused_before_anything_is_sent(forge: str, url: str, repository: str) -> None:
    with pytest.raises(NotSaid):
        StatusPlace(forge, url, repository)
