"""Credentials of a source stand in its requests and nowhere else: no log, error, text, argument list, environment or
file."""

from __future__ import annotations

import base64
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from support.gitserver import GitAsked
from support.sourcevisits import NAME, Tenant

from reconciler.repository.sourcerefs import SourceCredentials
from reconciler.sourcing.follower import SourceFollower
from reconciler.sourcing.settings import FollowSettings

WORD = f"hunter{uuid.uuid4().hex}"
"""In no other process but by a fault: other tests run at the same time, with secrets of theirs."""
PASSWORD, TOKEN = f"{WORD}-password", f"{WORD}-token"
SECRETS = [WORD.encode(), base64.b64encode(f"u:{PASSWORD}".encode()), base64.b64encode(f"u:{PASSWORD}x".encode())]


def processes() -> Iterator[bytes]:
    """What everybody, or this user, may read of processes."""
    for directory in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                yield (directory / name).read_bytes()
            except OSError:
                continue


def files(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc here")
def test_credentials_stand_in_requests_alone(
    tenant: Tenant, caplog: pytest.LogCaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    for name in ("GIT_TRACE", "GIT_TRACE_CURL", "GIT_CURL_VERBOSE"):
        monkeypatch.setenv(name, str(scratch / "trace"))
    tenant.server.password = PASSWORD
    texts, seen = list[str](), list[bytes]()
    stop = threading.Event()

    def watch() -> None:
        while not stop.is_set():
            seen.extend(found for found in processes() if any(secret in found for secret in SECRETS))

    watcher = threading.Thread(target=watch)
    watcher.start()
    tenant.repository.commit({f"{number}.yaml": os.urandom(2000) for number in range(300)})
    follower = SourceFollower(tenant.store, lambda _: None, FollowSettings(least=0.01))
    follower.start()
    try:
        right = SourceCredentials("u", PASSWORD)
        sources = [
            tenant.server.source("a.git", credentials=SourceCredentials("u", PASSWORD + "x")),
            tenant.server.source("a.git", credentials=SourceCredentials(token=TOKEN)),
            tenant.server.source("a.git", credentials=right),
        ]
        for source in sources:
            looked_again(follower, partial(follower.follow, {NAME: source}))
            texts += [repr(follower.found(NAME)), repr(source), str(source), repr(follower._states)]
        assert follower.found(NAME).commit == tenant.repository.head
        tenant.server.spoil = echo
        tenant.repository.commit({"a": "b"})
        looked_again(follower, partial(follower.look_now, [NAME]))
        texts.append(repr(follower.found(NAME)))
        assert follower.found(NAME).reason == "Failing"
    finally:
        follower.close(10)
        stop.set()
        watcher.join()
    assert seen == []
    everything = [text.encode() for text in texts] + [caplog.text.encode()]
    everything += [*files(tenant.store.directory), *files(scratch)]
    assert not [found for found in everything for secret in SECRETS if secret in found]
    assert {asked.headers["Authorization"] for asked in tenant.server.asked} == {
        s.credentials.header() for s in sources
    }


def looked_again(follower: SourceFollower, because: Callable[[], None]) -> None:
    before, until = follower.found(NAME).looked, time.monotonic() + 60
    because()
    while follower.found(NAME).looked == before:
        assert time.monotonic() < until
        threading.Event().wait(0.01)


def echo(asked: GitAsked) -> bool:
    """A host that says in its errors what it was told."""
    asked.reply(f"who is {asked.headers['Authorization']}?".encode(), 500, X_Said=asked.headers["Authorization"])
    return True


def test_credentials_are_not_sent_to_where_a_redirect_leads(tenant: Tenant) -> None:
    tenant.server.password = PASSWORD

    def redirect(asked: GitAsked) -> bool:
        if asked.repository == "a.git":
            asked.reply(b"", 307, Location=tenant.server.url("b.git/info/refs?service=git-upload-pack"))
        return asked.repository == "a.git"

    tenant.server.spoil = redirect
    with pytest.raises(Exception, match="redirects are not followed"):
        tenant.visit(tenant.server.source("a.git", credentials=SourceCredentials("u", PASSWORD)))
    assert [asked.repository for asked in tenant.server.asked] == ["a.git"]


@pytest.mark.parametrize("credentials", [SourceCredentials("u", PASSWORD), SourceCredentials(token=TOKEN)])
def test_credentials_that_a_redirect_says_again_are_not_told(tenant: Tenant, credentials: SourceCredentials) -> None:
    word = credentials.header().rpartition(" ")[2].rstrip("=")
    for said in (credentials.password, credentials.token, f"x{word}y", "%68" + PASSWORD.removeprefix("h")):
        where = f"/{said}.git/info/refs?service=git-upload-pack"
        tenant.server.spoil = lambda asked, where=where: asked.reply(b"", 301, Location=where) is None
        with pytest.raises(Exception, match="redirects are not followed") as refused:
            tenant.visit(tenant.server.source("a.git", credentials=credentials))
        assert WORD not in str(refused.value) and word not in str(refused.value)
