"""Bounds on what is answered at a time, deadlines, and who gets in without credentials."""

import asyncio
from typing import Any

import pytest

from apiserver.auth.authn import Authenticator
from apiserver.auth.user import MASTERS, User
from apiserver.auth.warrants import CLUSTER_NAME
from apiserver.endpoints import inflight, reads
from apiserver.endpoints.inflight import InFlight, Slot, seconds
from apiserver.model.errors import StatusError

READ = {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"]}
PATH = "/api/v1/configmaps"


@pytest.mark.parametrize(
    ("text", "value"),
    [("32s", 32), ("1m30s", 90), ("1.5h", 5400), (".5s", 0.5), ("100ms", 0.1), ("-1s", -1), ("+2m", 120), ("0", 0)],
)
def test_durations_as_go_writes_them(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x", 'time: invalid duration "x"'),
        ("", 'time: invalid duration ""'),
        ("-", 'time: invalid duration "-"'),
        ("5", 'time: missing unit in duration "5"'),
        ("5x", 'time: unknown unit "x" in duration "5x"'),
        ("1s2", 'time: missing unit in duration "1s2"'),
    ],
)
def test_what_is_no_duration(text: str, why: str) -> None:
    with pytest.raises(ValueError) as raised:
        seconds(text)
    assert str(raised.value) == why


def test_a_bad_timeout_is_400(api: Any, run: Any) -> None:
    reply = run(api.get(f"{PATH}?timeout=1d"))
    text = 'invalid timeout specified in the request URL - time: unknown unit "d" in duration "1d"'
    assert (reply.status, reply.message) == (400, text)
    assert run(api.get(f"{PATH}?timeout=0")).status == 200


def test_one_user_and_all_of_them_are_bounded(run: Any) -> None:
    limits = InFlight(3, 2)
    ann, bob, eve = User("ann"), User("bob"), User("eve")

    def slot(user: User) -> Slot:
        return limits.slot(user, 60)

    async def exercise() -> None:
        with slot(ann), slot(ann):
            with pytest.raises(StatusError) as raised, slot(ann):
                pass
            assert (raised.value.code, raised.value.as_status()["details"]) == (429, {"retryAfterSeconds": 1})
            with slot(bob):
                with pytest.raises(StatusError), slot(eve):
                    pass
                with slot(User("admin", (MASTERS,))):
                    pass
            with slot(eve):
                pass
        with slot(ann), slot(ann):
            pass

    run(exercise())
    assert (limits.all, limits.by_user) == (0, {})


def test_accounts_of_one_name_in_two_workspaces_are_two_users(run: Any) -> None:
    limits = InFlight(9, 1)
    name = "system:serviceaccount:default:default"
    one, other = (User(name, extra={CLUSTER_NAME: (cluster,)}) for cluster in ("a", "b"))

    async def exercise() -> None:
        with limits.slot(one, 60), limits.slot(other, 60), pytest.raises(StatusError), limits.slot(one, 60):
            pass

    run(exercise())


@pytest.mark.parametrize("precise", [60.0, 0.0])
def test_what_takes_too_long_ends_and_what_is_cancelled_is_cancelled(
    run: Any, monkeypatch: pytest.MonkeyPatch, precise: float
) -> None:
    """With a timer of its own, and with the one for all."""
    monkeypatch.setattr(inflight, "_PRECISE", precise)
    monkeypatch.setattr(inflight, "_LOOK", 0.01)
    limits = InFlight(9, 9)

    async def work(seconds: float) -> None:
        with limits.slot(User("ann"), seconds):
            await asyncio.Event().wait()

    async def exercise() -> None:
        with pytest.raises(StatusError) as raised:
            await work(0.01)
        assert raised.value.code == 504
        task = asyncio.ensure_future(work(60))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(exercise())
    assert limits.all == 0


def test_too_many_are_told_when_to_come_again(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api.allow("ann", READ)
    api.app._inflight = InFlight(9, 1)

    async def exercise() -> Any:
        go = asyncio.Event()
        answer = reads.list_

        async def slow(asking: Any) -> None:
            await go.wait()
            await answer(asking)

        monkeypatch.setattr(reads, "list_", slow)
        watch = api.watch(f"{PATH}?watch=true", authorization="Bearer ann")
        assert (await watch.next())["type"] == "ADDED"
        first = asyncio.ensure_future(api.call("GET", PATH, user="ann"))
        await asyncio.sleep(0)
        second = await api.call("GET", PATH, user="ann")
        go.set()
        await watch.leave()
        return (await first).status, second

    status, refused = run(exercise())
    assert status == 200
    assert (refused.status, refused.headers["retry-after"]) == (429, "1")
    assert refused.json["reason"] == "TooManyRequests"
    assert refused.json["details"]["retryAfterSeconds"] == 1


def test_what_takes_too_long_is_504(api: Any, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(asking: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(reads, "list_", never)
    reply = run(api.get(f"{PATH}?timeout=10ms"))
    assert (reply.status, reply.json["reason"]) == (504, "Timeout")
    assert reply.message == "Timeout: request did not complete within the allotted timeout"


def test_a_watch_outlives_the_timeout(api: Any, run: Any) -> None:
    async def exercise() -> Any:
        watch = api.watch(f"{PATH}?watch=true&timeout=1ms&resourceVersion={api.store.revision()}")
        api.put(api.manifest("v1 ConfigMap", "new", "default"))
        found = await watch.next()
        await watch.leave()
        return found

    assert run(exercise())["object"]["metadata"]["name"] == "new"


def test_without_credentials_only_health_answers(api: Any, run: Any) -> None:
    api.app._authenticator = Authenticator()
    assert run(api.get("/clusters/root/api")).status == 401
    for world in ("", "/clusters/root:shop", "/clusters/root:nowhere", "/targets/root:edge"):
        assert run(api.get(f"{world}/healthz")).body == b"ok"
    assert run(api.call("POST", "/healthz")).status == 401


def test_whoever_has_credentials_may_ask_for_health(api: Any, run: Any) -> None:
    assert run(api.call("GET", "/clusters/root:shop/livez", user="stranger")).body == b"ok"
    assert run(api.call("GET", "/clusters/root:shop/version", user="stranger")).status == 403


def test_anonymous_where_it_is_on(api: Any, run: Any) -> None:
    api.app._authenticator = Authenticator(anonymous=True)
    reply = run(api.get(PATH))
    assert reply.status == 403
    assert reply.message.startswith('configmaps is forbidden: User "system:anonymous" cannot list')
    api.allow("system:anonymous", READ)
    assert run(api.get(PATH)).status == 200
    # Wrong credentials are wrong, not absent.
    assert run(api.call("GET", PATH, user="made-up")).status == 401
