"""Where a token may go, what is no token, and an answer that comes late or never."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.fakeforges import TOKEN, FakeGitea, Said, serving

from apiserver.auth.pki import ensure_keys
from reconciler.forges.address import checked
from reconciler.forges.errors import ForgeError, MaybeDone, NotSaid
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest
from reconciler.forges.paging import _NEXT
from reconciler.forges.wire import ForgePatience

USER = ForgeRequest("GET", "/user")


@pytest.fixture
def fake() -> Iterator[FakeGitea]:
    with serving(FakeGitea()) as found:
        assert isinstance(found, FakeGitea)
        yield found


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.org",
        "https://git.example.org:3000/git",
        "http://127.0.0.1:3000",
        "http://localhost",
        "http://[::1]:1",
    ],
)
def test_where_a_token_may_go(url: str) -> None:
    assert checked(f"{url}/") == url


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("http://git.example.org", "not secured"),
        ("http://127.0.0.1.example.org", "not secured"),
        ("http://10.0.0.1", "not secured"),
        ("HTTP://git.example.org", "not secured"),
        ("ftp://git.example.org", "no URL of a forge"),
        ("file:///etc/passwd", "no URL of a forge"),
        ("git.example.org", "no URL of a forge"),
        ("https://", "no URL of a forge"),
        ("https://git.example.org?x=1", "no URL of a forge"),
        ("https://git.example.org:port", "no URL"),
        ("https://[::1", "no URL"),
        ("https://git.example.org\r\nX: y", "characters"),
        ("https://gït.example.org", "characters"),
    ],
)
def test_where_no_token_goes(url: str, text: str) -> None:
    with pytest.raises(NotSaid, match=text):
        ForgeClient(url, TOKEN, "")


def test_a_password_in_a_url_is_not_repeated() -> None:
    with pytest.raises(NotSaid) as error:
        checked("https://bot:pass-word@git.example.org")
    assert "pass-word" not in error.value.text + error.value.hint


@pytest.mark.parametrize("token", ["", "two words", "two\nlines", "tökén", "end\r"])
def test_what_is_no_token(token: str) -> None:
    with pytest.raises(NotSaid) as error:
        ForgeClient("https://git.example.org", token, "")
    assert not token or token not in error.value.text + error.value.hint


def test_a_forge_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    client = ForgeClient(f"http://127.0.0.1:{port}", TOKEN, "")
    with pytest.raises(ForgeError, match=r"does not answer: .*refused") as error:
        client.ask(replace_method("POST"))
    assert not isinstance(error.value, MaybeDone), "nothing was sent"


def replace_method(method: str) -> ForgeRequest:
    return USER._replace(method=method, body={})


@pytest.mark.parametrize(("method", "kind"), [("GET", ForgeError), ("POST", MaybeDone)])
def test_a_forge_that_says_nothing_is_left(method: str, kind: type[ForgeError]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        client = ForgeClient(url, TOKEN, "", replace(ForgePatience(), quiet=0.05))
        with pytest.raises(ForgeError, match="does not answer") as error:
            client.ask(replace_method(method))
    assert type(error.value) is kind


def test_a_forge_that_takes_too_long_is_left(fake: FakeGitea) -> None:
    times = iter([0.0, 121.0])
    client = ForgeClient(f"{fake.url}/api/v1", TOKEN, "", replace(ForgePatience(), clock=lambda: next(times)))
    with pytest.raises(ForgeError, match="more than 120 s"):
        client.ask(USER)


def test_a_forge_whose_certificate_nobody_vouches_for_gets_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = ensure_keys(tmp_path)
    with serving(FakeGitea(), keys) as fake:
        with pytest.raises(ForgeError, match=r"does not answer: .*CERTIFICATE_VERIFY_FAILED"):
            ForgeClient(f"{fake.url}/api/v1", TOKEN, "").ask(USER)
        assert fake.asked == []
        monkeypatch.setenv("SSL_CERT_FILE", str(keys.ca))
        assert ForgeClient(f"{fake.url}/api/v1", TOKEN, "").ask(USER).value["id"] == 7


def test_no_proxy_is_asked_for_this_machine(fake: FakeGitea, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert ForgeClient(f"{fake.url}/api/v1", TOKEN, "").ask(USER).value["id"] == 7


@pytest.mark.parametrize(
    ("said", "waited"),
    [("3", 3.0), ("999999", 60.0), ("-1", 1.0), ("soon", 1.0), ("²", 1.0), ("9" * 400, 1.0), ("", 1.0)],
)
def test_how_long_a_busy_forge_is_waited_for(fake: FakeGitea, said: str, waited: float) -> None:
    naps: list[float] = []
    fake.faults.append(("GET", Said(429, {}, {"Retry-After": said.encode().decode("latin-1")})))
    ForgeClient(f"{fake.url}/api/v1", TOKEN, "", replace(ForgePatience(), sleep=naps.append)).ask(USER)
    assert naps == [waited]


def test_a_403_with_a_time_is_one_who_asks_too_often(fake: FakeGitea) -> None:
    naps: list[float] = []
    fake.faults.append(("GET", Said(403, {"message": "secondary rate limit"}, {"Retry-After": "5"})))
    ForgeClient(f"{fake.url}/api/v1", TOKEN, "", replace(ForgePatience(), sleep=naps.append)).ask(USER)
    assert naps == [5.0]


@pytest.mark.parametrize(
    ("link", "goes_on"),
    [
        ('<https://a/?page=2>; rel="next"', True),
        ('<https://a/?page=1>; rel="prev", <https://a/?page=3>; rel="next", <https://a/?page=9>; rel="last"', True),
        ("<https://a/?page=2>; rel=next", True),
        ('<https://a/?page=1>; rel="first", <https://a/?page=1>; rel="last"', False),
        ('<https://a/?rel=next>; rel="last"', False),
    ],
)
def test_whether_there_is_another_page(link: str, goes_on: bool) -> None:
    assert bool(_NEXT.search(link)) is goes_on
