"""What is wrong, as a server says it, and as its data directory says it: the same, whatever stands in the store."""

from __future__ import annotations

import asyncio
import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.room import plenty

from apiserver.auth import pki
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import AUTHENTICATED, MASTERS, User
from apiserver.complaints import gather as gathering
from apiserver.complaints.complaint import Complaints
from apiserver.complaints.machine import MachinePlace
from apiserver.endpoints.kube import KubernetesAPI
from apiserver.model.commits import own
from apiserver.model.conditions import condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, SYNC_TARGETS
from apiserver.registry import indexes, looks, tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.looks import Away, WaitingHead
from apiserver.registry.tree import FleetRecord, WorkspaceRecord
from apiserver.settings import ServerSettings
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Op, Put, Store
from apiserver.stores import open_at
from reconciler.commands.datadirectory import of_data_directory
from reconciler.commands.servedat import ServedAt

Object = dict[str, Any]

TEXTS = st.sampled_from(["", "why", "two\nlines", "\x1b[2J", "é" * 700])
CONDITIONS = st.lists(
    st.builds(
        condition,
        st.sampled_from(
            [
                "Ready",
                "Scheduled",
                "Synced",
                "LeaseHeld",
                "CredentialsValid",
                "SourceFollowed",
                "SourceStatusWritten",
                "CommitApplied",
            ]
        ),
        st.sampled_from([True, False, None]),
        st.sampled_from(["", "SecretsLocked", "Failing"]),
        TEXTS,
    ),
    max_size=3,
)
NAMES = st.sampled_from(["a", "b", "c"])
WORKSPACES = st.dictionaries(NAMES, st.tuples(st.lists(TEXTS.filter(bool), max_size=2), CONDITIONS), max_size=3)
OBJECTS = st.dictionaries(
    st.tuples(st.sampled_from([indexes.PLACEMENTS, SYNC_TARGETS]), NAMES, NAMES), CONDITIONS, max_size=5
)
TROUBLES = st.dictionaries(
    st.sampled_from(
        ["Observing", "Held", "Unreadable", "RemoteAway", "StatusBranchDiverged", "StatusBranchRefused", "New"]
    ),
    TEXTS.filter(bool),
    max_size=3,
)


class Masters:
    """Everybody is."""

    def authenticate(self, scope: Any, *, basic: bool = False) -> User:
        return User("admin", (MASTERS, AUTHENTICATED))

    def review(self, token: str, audiences: Any = ()) -> None:
        return None


class NoTargets:
    def realm(self, workspace: str, name: str) -> None:
        return None


def asked(store: Store, place: MachinePlace) -> Object:
    """Of the server."""
    server = ServerSettings(place.data_dir, place.keys_dir)
    app = KubernetesAPI(store, Catalog(store), Masters(), Authorizer(store), server, NoTargets())  # type: ignore[arg-type]
    body = b""

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        nonlocal body
        body += message.get("body", b"")

    scope = {"type": "http", "method": "GET", "path": "/status", "query_string": b"", "headers": [], "extensions": {}}
    asyncio.run(app(scope, receive, send))
    app.close()
    found: Object = orjson.loads(body)
    return found


def filled(workspaces: Object, objects: Object) -> Iterator[Op]:
    for path in ("root", *(f"root:{name}" for name in workspaces)):
        errors, told = workspaces.get(path.partition(":")[2], ([], []))
        cluster = path if path == "root" else f"{path[5:]:0<16}"
        record = WorkspaceRecord(path, cluster, path.rpartition(":")[0], errors=errors)
        yield from (tree.put_workspace(record), tree.placed(record), *tree.listed(record, None))
        yield put(Key(LOGICAL_CLUSTERS, cluster, "", "cluster"), told)
    for (resource, workspace, name), told in objects.items():
        yield put(Key(resource, f"{workspace:0<16}", "", name), told)


def put(key: Key, told: list[Object]) -> Put:
    return Put(key, orjson.dumps({"metadata": {"name": key.name}, "status": {"conditions": told}}))


@contextmanager
def running(data_dir: Path) -> Iterator[None]:
    """As a server has the directory."""
    with (data_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(WORKSPACES, OBJECTS, TROUBLES, st.booleans(), st.booleans())
def test_both_say_the_same(
    workspaces: Object, objects: Object, troubles: dict[str, str], loaded: bool, waits: bool
) -> None:
    with TemporaryDirectory() as made:
        place = MachinePlace(Path(made), Path(made) / "keys")
        store = open_at(place.store_dir, sync=False)
        fleet = FleetRecord(loaded=loaded, commit=own("1" * 40), done=1, total=2)
        more = [looks.put_waiting(WaitingHead("2" * 40, 1.0)), looks.put_away(Away(1.0, 2.0))] if waits else []
        store.write(tree.put_fleet(fleet), tree.put_troubles(troubles), *more, *filled(workspaces, objects)).result()
        server = asked(store, place)
        store.close()  # a process opens a store once
        with running(place.data_dir):
            assert of_data_directory(place.data_dir, place.keys_dir).document() == server
        stopped = of_data_directory(place.data_dir, place.keys_dir)
        assert stopped.listed[0].kind == "stopped"
        assert stopped.document()["wrong"][1:] == server["wrong"]


@pytest.fixture(scope="module", autouse=True)
def room() -> Iterator[None]:
    with plenty():
        yield


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """One that was served from, of a server that is gone."""
    store = open_at(tmp_path / "store", sync=False)
    store.write(tree.put_fleet(FleetRecord(loaded=True, commit=own("1" * 40))), *filled({}, {})).result()
    store.close()
    return tmp_path


def looked_at(data_dir: Path) -> Complaints:
    return of_data_directory(data_dir, data_dir / "keys")


def test_nothing_is_changed_by_looking(data_dir: Path) -> None:
    before = (data_dir / "store" / "data.mdb").read_bytes()
    assert [each.kind for each in looked_at(data_dir).listed] == ["stopped"]
    assert (data_dir / "store" / "data.mdb").read_bytes() == before
    assert sorted(file.name for file in data_dir.iterdir()) == ["store"]


def test_a_server_that_does_not_run_says_what_it_said_last(data_dir: Path) -> None:
    ServedAt("", "", log=str(data_dir / "server.log")).write(data_dir)
    (data_dir / "server.log").write_bytes(b"x" * 20_000 + b"\n2026-01-01 no space left \xff\n")
    (found,) = looked_at(data_dir).listed
    assert "server.log: 2026-01-01 no space left" in found.what
    assert found.command == f"treeplane up --data-dir {data_dir}"


def test_certificates_that_the_server_was_given_are_looked_at(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = pki.ensure_keys(data_dir.parent / "others")
    written: Any = {"clients": str(keys.ca), "external": 7, "unknown": "x"}
    ServedAt("", "", given=written).write(data_dir)
    assert [each.kind for each in looked_at(data_dir).listed] == ["stopped"]
    ends = pki.ends(keys.ca.read_bytes())
    monkeypatch.setattr(gathering.time, "time", lambda: ends - 10)
    assert [(each.kind, each.where) for each in looked_at(data_dir).listed] == [
        ("stopped", str(data_dir)), ("certificate", str(keys.ca)),
    ]  # fmt: skip
    (data_dir / "served-at.json").write_text('{"url": "", "local_url": "", "given": 7}')
    assert [each.kind for each in looked_at(data_dir).listed] == ["stopped"]


def test_an_empty_directory_is_a_sentence(tmp_path: Path) -> None:
    found = looked_at(tmp_path)
    assert [each.kind for each in found.listed] == ["stopped", "store"]
    assert "no server has loaded anything here yet" in found.listed[1].what
    assert found.unseen == ("what stands in the store",)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_none(data_dir: Path) -> None:
    (data_dir / "store" / "data.mdb").write_bytes(b"nonsense" * 4096)
    assert [each.kind for each in looked_at(data_dir).listed] == ["stopped", "store"]
    shutil.rmtree(data_dir / "store")
    (data_dir / "store").mkdir()
    (data_dir / "store" / "data.mdb").write_bytes(b"")
    assert [each.kind for each in looked_at(data_dir).listed] == ["stopped", "store"]


def test_a_store_of_another_version(tmp_path: Path) -> None:
    open_store(tmp_path / "store", sync=False).close()  # without today's indexes
    found = looked_at(tmp_path).listed[1]
    assert (found.kind, "another version of Treeplane wrote it" in found.what) == ("store", True)
