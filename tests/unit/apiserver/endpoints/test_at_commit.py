"""A workspace as a commit has it: who may read it, what answers, and what becomes of stores that others took away."""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from apiserver.auth.rbac import Authorizer
from apiserver.endpoints import commitviews
from apiserver.endpoints.commitasking import KEPT, LONGEST, MARK, CommitFilled, CommitQuestion, told
from apiserver.endpoints.commitviews import OPEN, CommitViews
from apiserver.endpoints.realms import Realm
from apiserver.localsocket import COMMITS, address
from apiserver.model.commits import own
from apiserver.model.errors import StatusError
from apiserver.registry import codec
from apiserver.registry.catalog import Catalog
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, placed, put_fleet, put_workspace
from apiserver.storage.protocol import Put
from apiserver.stores import open_at

ID, LATER = "1" * 40, "2" * 40
OLD = f"/commits/{ID}/clusters/root:shop/api/v1/namespaces/default/configmaps/old"
READ = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create"]}
PAST = {"nonResourceURLs": ["/commits"], "verbs": ["get"]}


class Past:
    """Who answers about commits, as the reconciler's process does: each has root:shop with a ConfigMap `old`.
    `clusters`: as which logical cluster, by commit ("": it is not there); `asked`: what was asked for."""

    def __init__(self, api: Any, directory: Path) -> None:
        self.api, self.directory = api, directory
        self.clusters: dict[str, str] = {}
        self.asked: list[CommitQuestion] = []
        self.refusal: StatusError | None = None
        self.recorded, self.errors = ID, list[str]()
        self.views = CommitViews(
            directory,
            lambda at: open_at(at, sync=False),
            lambda store: Realm(store, Catalog(store), Authorizer(api.store)),
        )
        api.app._commits = self.views

    @contextlib.asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        with address(self.directory, COMMITS) as at:
            server = await asyncio.start_unix_server(self._answer, at, limit=LONGEST)
        async with server:
            yield

    def take_away(self, name: str) -> None:
        (self.directory / KEPT / name / MARK).unlink()
        shutil.rmtree(self.directory / KEPT / name)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = CommitQuestion.parse(await reader.readline())
        self.asked.append(asked)
        writer.write(told(self.refusal or self._filled(asked)))
        await writer.drain()
        writer.close()

    def _filled(self, asked: CommitQuestion) -> CommitFilled:
        commit = asked.rev if len(asked.rev) == 40 else ID
        name = f"{commit}-{len(asked.path)}-{asked.children}"
        directory = self.directory / KEPT / name
        if not directory.exists():
            self._make(directory, self.clusters.get(commit, self.api.SHOP), commit)
        return CommitFilled(commit, name, self.recorded)

    def _make(self, directory: Path, cluster: str, commit: str) -> None:
        store = open_at(directory / "store", sync=False)
        record = WorkspaceRecord("root:shop", cluster, "root", commit=own(commit), errors=self.errors)
        if cluster:
            store.write(put_workspace(record), placed(record)).result(10)
        store.write(put_fleet(FleetRecord("fleet", loaded=True))).result(10)
        old = self.api.manifest("v1 ConfigMap", "old", "default", cluster, data={"of": commit[:3]})
        store.write(Put(key(old), codec.encode(old))).result(10)
        store.close()
        (directory / MARK).touch()


def key(obj: Any) -> Any:
    from apiserver.model.keys import Key

    annotations = obj["metadata"]["annotations"]
    return Key("configmaps", annotations["kcp.io/cluster"], "default", obj["metadata"]["name"])


@pytest.fixture
def past(api: Any, tmp_path: Path) -> Past:
    return Past(api, tmp_path)


Run = Callable[[Any], Any]


def test_it_is_read_as_the_commit_has_it(past: Past, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commitviews, "_FRESH", math.inf)  # after that it would be asked again

    async def scenario() -> None:
        async with past.answering():
            found = await past.api.get(OLD)
            assert (found.status, found.json["data"]) == (200, {"of": "111"})
            assert found.headers["treeplane-commit"] == ID
            assert "warning" not in found.headers
            assert (await past.api.get(OLD.replace(ID, LATER))).json["data"] == {"of": "222"}
            assert (await past.api.get("/clusters/root:shop/api/v1/namespaces/default/configmaps/old")).status == 404
            listed = await past.api.get(f"/commits/{ID}/clusters/root:shop/api/v1/configmaps")
            assert [each["metadata"]["name"] for each in listed.json["items"]] == ["old"]
            groups = await past.api.get(f"/commits/{ID}/clusters/root:shop/apis")
            assert groups.json["kind"] == "APIGroupList"
            assert (await past.api.get(f"/commits/{ID}/clusters/root:shop/openapi/v3")).status == 200
            assert (await past.api.get(f"/commits/{ID}/clusters/{past.api.SHOP}/api/v1/configmaps")).status == 200
        assert len(past.asked) == 2, "an id means the same for ever"
        assert {each.path for each in past.asked} == {"root:shop"}

    run(scenario())


def test_it_is_only_read(past: Past, run: Run) -> None:
    async def scenario() -> None:
        async with past.answering():
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                path = OLD if method != "POST" else OLD.rpartition("/")[0]
                assert (await past.api.call(method, path, b"{}")).status == 405, method
            for path in (f"{OLD}?watch=1", OLD.replace("/api/v1/", "/api/v1/watch/")):
                assert (await past.api.get(path)).status == 405, path
            for rest in ("/healthz", "/metrics", "/openid/v1/jwks"):
                assert (await past.api.get(f"/commits/{ID}/clusters/root:shop{rest}")).status == 404, rest
            for path in (f"/commits/{ID}/clusters/*/api", f"/commits/{ID}/api", "/commits//clusters/root:shop/api"):
                assert (await past.api.get(path)).status == 404, path
        assert past.asked == []

    run(scenario())


def test_what_may_be_read_now_decides_before_anybody_looks_for_the_commit(past: Past, run: Run) -> None:
    api = past.api
    api.allow("ann", READ, cluster=api.SHOP)
    api.allow("bob", READ)  # in root

    async def scenario() -> None:
        async with past.answering():
            assert (await api.get(OLD, user="bob")).status == 403
            assert (await api.get(OLD.replace("root:shop", "root:none"), user="bob")).status == 403
            assert (await api.get(OLD.replace("configmaps", "secrets"), user="ann")).status == 403
            assert (await api.call("POST", OLD.rpartition("/")[0], b"{}", user="bob")).status == 403
            assert (await api.get(OLD, user="nobody")).status == 401
            assert past.asked == []
            assert (await api.get(OLD, user="ann")).status == 200
            assert (await api.get(OLD, impersonate_user="bob")).status == 403
            assert past.asked[-1].user == "ann"

    run(scenario())


def test_a_predecessor_is_roots_alone(past: Past, run: Run) -> None:
    api = past.api
    past.clusters = {ID: "another000000000", LATER: ""}
    api.allow("ann", READ, cluster=api.SHOP)
    api.allow("ruth", READ, PAST)
    api.allow("rob", READ)
    api.allow("rex", PAST)

    async def scenario() -> None:
        async with past.answering():
            theirs, none = await api.get(OLD, user="ann"), await api.get(OLD.replace(ID, LATER), user="ann")
            assert (theirs.status, none.status) == (404, 404)
            assert theirs.message.replace(ID[:10], LATER[:10]) == none.message, "nobody learns that there was another"
            assert (await api.get(OLD, user="ruth")).json["data"] == {"of": "111"}
            asked = len(past.asked)
            for user in ("rob", "rex"):
                assert (await api.get(OLD, user=user)).status == 403, user
            assert len(past.asked) == asked

    run(scenario())


def test_a_mount_that_leads_nowhere_lets_nobody_in(past: Past, run: Run) -> None:
    past.api.put_workspace("root:mounted", "mounted000000000", mounts=True)
    past.api.allow("bob", READ)  # in root, where he learns why it is not there

    async def scenario() -> None:
        async with past.answering():
            assert (await past.api.get("/clusters/root:mounted/api/v1/configmaps", user="bob")).status == 503
            path = f"/commits/{ID}/clusters/root:mounted/api/v1/configmaps"
            assert (await past.api.get(path, user="bob")).status == 403
        assert past.asked == []

    run(scenario())


def test_who_administers_root_reads_what_is_gone(past: Past, run: Run) -> None:
    gone = OLD.replace("root:shop", "root:gone")

    async def scenario() -> None:
        async with past.answering():
            found = await past.api.get(gone)
            assert (found.status, found.message) == (404, f'workspace "root:gone" was not there at commit {ID:.10}')
        assert past.asked[-1].path == "root:gone"

    run(scenario())


def test_what_differs_from_what_was_served_is_said(past: Past, run: Run) -> None:
    past.errors = ["workspaces/root/shop/a.yaml:3: bad"]

    async def scenario() -> None:
        async with past.answering():
            said = (await past.api.get(OLD)).headers["warning"]
            assert "held at commit 1111111111" in said and "a.yaml:3: bad" in said
            past.errors, past.recorded = [], ID
            said = (await past.api.get(OLD.replace(ID, LATER))).headers["warning"]
            assert "2222222222 was not recorded as served: statuses are those of 1111111111" in said

    run(scenario())


def test_what_is_answered_reaches_who_asked(past: Past, run: Run) -> None:
    past.refusal = StatusError(429, "TooManyRequests", "too many commits", retry_after=1)

    async def scenario() -> None:
        assert (await past.api.get(OLD)).status == 503, "nobody answers"
        async with past.answering():
            found = await past.api.get(OLD)
            assert (found.status, found.headers["retry-after"], found.message) == (429, "1", "too many commits")

    run(scenario())


def test_a_store_that_was_taken_away_is_asked_for_anew(past: Past, run: Run) -> None:
    async def scenario() -> None:
        async with past.answering():
            assert (await past.api.get(OLD)).status == 200
            past.take_away(f"{ID}-9-False")
            assert (await past.api.get(OLD)).status == 200
            assert len(past.asked) == 2
            for number in range(OPEN + 3):
                assert (await past.api.get(OLD.replace(ID, f"{number:040x}"))).status == 200
            assert len(past.views._opened) <= OPEN

    run(scenario())


def test_a_store_is_not_closed_under_who_reads_it(past: Past, run: Run) -> None:
    async def scenario() -> None:
        async with past.answering():
            async with past.views.found(CommitQuestion(ID, "root:shop", "ann")) as found:
                past.take_away(f"{ID}-9-False")
                await asyncio.gather(*(past.api.get(OLD.replace(ID, f"{n:040x}")) for n in range(OPEN + 2)))
                assert found.realm.store.revision() > 0
            assert f"{ID}-9-False" not in past.views._opened

    run(scenario())
