"""Passwords in a repository's URL: in nothing that is printed, and in no argument list."""

from __future__ import annotations

import base64
import contextlib
import functools
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from apiserver.model.redaction import redact
from reconciler.repository.credentials import apart
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import Mirror

MASKED = {
    "https://user:hunter2@host/x.git": "https://***@host/x.git",
    "https://user:p@ss@host/x.git": "https://***@host/x.git",
    "https://user:p@s:s@host:8443/x.git": "https://***@host:8443/x.git",
    "https://user:pa/ss@host/x.git": "https://***@host/x.git",
    "https://ghp_token@host/x.git": "https://***@host/x.git",
    "https://:pass@host/x.git": "https://***@host/x.git",
    "ssh://git:pass@host/x.git": "ssh://***@host/x.git",
    "token:secret@host:path/x.git": "***@host:path/x.git",
    "https://host/x.git?private_token=abc&x=1": "https://host/x.git?***",
    "fatal: no access to 'https://user:p@ss@host/x.git/': no": "fatal: no access to 'https://***@host/x.git/': no",
    'remote: "https://u:p@h/x" and https://u:p@h/y\n': 'remote: "https://***@h/x" and https://***@h/y\n',
    "HTTPS://U:P@H/x": "HTTPS://***@H/x",
}
KEPT = [
    "git@host:path/x.git", "https://host/x@y.git", "https://host:8443/x@y.git", "ssh://host/x", "/a/b@c", "a: b@c.d: e",
    "file:///a/b", "mail of ann@example.org: x", "http://[::1]:80/x",
]  # fmt: skip


@pytest.mark.parametrize("text", MASKED)
def test_what_may_be_secret_is_masked(text: str) -> None:
    assert redact(text) == MASKED[text]
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize("text", KEPT)
def test_what_is_not_stays(text: str) -> None:
    assert redact(text) == text


def test_hints_are_masked_too() -> None:
    assert "hunter2" not in str(RepositoryUnreadable("it", "try https://u:hunter2@h/x"))


def test_credentials_are_taken_apart() -> None:
    found = apart("https://us%40er:p@ss%2Fword@host:8443/x.git?a=b")
    assert found.url == "https://host:8443/x.git?a=b"
    assert sorted(found.variables.values()) == ["p@ss/word", "us@er"]
    assert "p@ss" not in str(found.settings)
    for url in ("https://host/x", "ssh://git@host/x", "git@host:x", "/a/b", "file:///a/b", "http://[::1"):
        assert apart(url) == (url, {}, {})


WORD = f"hunter@{uuid.uuid4().hex}"
"""A password that no other test has, which may run at the same time."""


class Guarded(SimpleHTTPRequestHandler):
    """A repository for whoever knows the password; it looks at every argument list meanwhile."""

    seen: ClassVar[list[bytes]] = []
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                self.seen.append((process / "cmdline").read_bytes())
        wanted = "Basic " + base64.b64encode(f"us@er:{WORD}".encode()).decode()
        self.asked.append(self.headers.get("Authorization", ""))
        if self.asked[-1] == wanted:
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    handler = functools.partial(Guarded, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_password_reaches_the_server_and_no_argument_list(
    tmp_path: Path, clone: Path, git: Callable[..., Any], server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(clone), "fleet.git")
    git(tmp_path / "fleet.git", "update-server-info")
    mirror = Mirror(tmp_path / "data", f"http://us%40er:{WORD}@{server}/fleet.git", "main", "treeplane/status")
    head = mirror.refresh().desired
    assert head == git(clone, "rev-parse", "HEAD").strip()
    assert any(Guarded.asked)
    assert any(b"remote-http" in words for words in Guarded.seen)
    assert not any(WORD.partition("@")[2].encode() in words for words in Guarded.seen)
    Guarded.asked.clear()
    wrong = Mirror(tmp_path / "other", f"http://us%40er:wrong@{server}/fleet.git", "main", "treeplane/status")
    with pytest.raises(RepositoryUnreadable) as raised:
        wrong.refresh()
    assert "wrong" not in str(raised.value)
