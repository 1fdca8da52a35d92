"""New tokens for sync targets, before the old ones end.

Called by the thread of each target (controllers/synctargets). At four fifths of its life a ServiceAccount's token asks
the target for the next one, which is tried and written to the Secret that the old one came from. Nobody connects anew
for it: the Secret is read as any is that changed. What cannot be renewed is told by the condition `CredentialsValid`.

A target may be any tenant's machine, and give what it likes: a token is taken where it is another of the same account,
lasts longer than the one that is there and lets us in, and it goes to that very target alone.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import yaml

from apiserver.kubeyaml import document
from apiserver.metrics.clusters import CREDENTIALS_END
from apiserver.model.conditions import Condition
from reconciler.controllers.failures import Expected, log_failure
from reconciler.controllers.targets import Cluster, Denied, Kubeconfig
from reconciler.syncing import kubeconfig as reading
from reconciler.syncing.client import TargetClient
from reconciler.syncing.errors import TargetRefused
from reconciler.syncing.lifetime import LARGEST, Lifetime, lifetime, of_token, told

Object = dict[str, Any]

_SHORTEST = 300.0
"""Seconds that a new token has to last: a cluster gives ten minutes at least."""
_LONGEST = 2**32 - 1
"""Seconds, as an API server takes them."""
_PAUSE = 300.0
"""Seconds between two tokens at least."""
_AGAIN, _SELDOM = 60.0, 3600.0
"""Seconds until the next attempt where one failed: at first, and at most."""
_ADD = "`treeplane target add {} --kubeconfig FILE` makes a token that is"


class TokenKeeping(Protocol):
    """Where kubeconfigs are kept."""

    def refuses(self, target: Object) -> str:
        """Why the target's kubeconfig cannot be written, and what to do; "" if it can."""

    def keep(self, target: Object, before: bytes, after: bytes) -> None:
        """Writes `after` where `before` stands. Raises Expected where it does not stand there any more, and where it
        cannot be written."""


class NotRenewed(Expected):
    """`reason`: for a condition."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(why)
        self.reason = reason


@dataclass(slots=True)
class _State:
    """What is known of one target's credentials. `again`: when the next attempt may be made."""

    target: Object
    kubeconfig: Kubeconfig = field(repr=False)
    lifetime: Lifetime
    reason: str = ""
    trouble: str = ""
    again: float = 0.0
    failures: int = 0


class Renewals:
    """`connect`: to try a new token. `now`: seconds since 1970."""

    def __init__(
        self,
        keeping: TokenKeeping,
        connect: Callable[[Kubeconfig], Cluster],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._keeping, self._connect, self._now = keeping, connect, now
        self._states: dict[str, _State] = {}
        self._lock = threading.Lock()

    def sees(self, key: str, target: Object, kubeconfig: Kubeconfig | None) -> None:
        before = self._state(key)
        if before is not None and kubeconfig == before.kubeconfig:
            before.target = target
            return
        state = self._new(target, kubeconfig) if kubeconfig is not None and not kubeconfig.embedded else None
        if state is not None and before is not None:
            state.again = before.again
        with self._lock:
            self._states.pop(key, None)
            if state is not None:
                self._states[key] = state
            self._count()

    def forget(self, key: str) -> None:
        with self._lock:
            self._states.pop(key, None)
            self._count()

    def _count(self) -> None:
        """Under the lock."""
        CREDENTIALS_END.set(min((state.lifetime.ends for state in self._states.values()), default=0.0))

    def told(self, key: str) -> Condition | None:
        state = self._state(key)
        if state is None:
            return None
        renews = max(state.lifetime.renews(_chance(key)), 0.0)
        return told(state.lifetime, self._now(), renews, state.reason, state.trouble)

    def explained(self, key: str, failure: Expected) -> Expected:
        state = self._state(key)
        if state is None or self._now() < state.lifetime.ends:
            return failure
        name = state.target["metadata"]["name"]
        return Denied(
            "CredentialsEnded",
            f"its {state.lifetime.what} has ended, so nothing is written to it and nothing moves away from it; "
            f"{_ADD.format(name).removesuffix(' that is')} ({failure})",
        )

    def renew(self, key: str, cluster: Cluster) -> None:
        state, now = self._state(key), self._now()
        if state is None or not isinstance(cluster, TargetClient) or now < state.again:
            return
        if state.lifetime.account is None or now < state.lifetime.renews(_chance(key)):
            return
        if cluster.barred() and now < state.lifetime.warns:
            return  # whoever may write to it renews it
        state.again = now + _PAUSE
        try:
            self._renew(state, cluster)
            state.reason, state.trouble, state.failures = "", "", 0
        except Expected as error:
            state.reason = error.reason if isinstance(error, NotRenewed) else "RenewalFailed"
            state.trouble = _shown(state, error)
            state.again = now + min(_AGAIN * float(2 ** min(state.failures, 10)), _SELDOM)
            state.failures += 1
            log_failure("renewal", state.target["metadata"]["name"], NotRenewed(state.reason, state.trouble))

    def _new(self, target: Object, kubeconfig: Kubeconfig) -> _State | None:
        try:
            found = lifetime(reading.read(kubeconfig.data))
        except Denied:
            return None
        if found is None:
            return None
        state = _State(target, kubeconfig, found)
        if found.account is None:
            add = _ADD.format(target["metadata"]["name"])
            whose = "a certificate" if found.what != "token" else "the token of anybody but a ServiceAccount"
            state.reason, state.trouble = "NotRenewable", f"{whose} is not renewed: {add}"
        else:
            why = self._keeping.refuses(target)
            state.reason, state.trouble = ("SecretNotWritable", why) if why else ("", "")
        return state

    def _renew(self, state: _State, cluster: TargetClient) -> None:
        why = self._keeping.refuses(state.target)
        if why:
            raise NotRenewed("SecretNotWritable", why)
        account = state.lifetime.account
        assert account is not None
        seconds = int(min(max(state.lifetime.life, 2 * _SHORTEST), _LONGEST))
        token = cluster.token(account.namespace, account.name, seconds)
        found = self._accepted(state, token)
        if found.ends <= state.lifetime.ends:
            # It gives shorter ones by now: the old one is the better one for a while.
            state.again = max(state.again, state.lifetime.ends - found.life / 2)
            return
        after = with_token(state.kubeconfig.data, token)
        self._try(state, after)
        self._keeping.keep(state.target, state.kubeconfig.data, after)

    def _accepted(self, state: _State, token: str) -> Lifetime:
        """What the target gave, if it is a token that may be used. Raises NotRenewed."""
        found = of_token(token) if len(token) <= LARGEST and reading.TOKEN.fullmatch(token) else None
        if found is None:
            raise NotRenewed("RenewalFailed", "the target gave something that is no token with an end")
        if found.account != state.lifetime.account:
            raise NotRenewed("RenewalFailed", "the target gave a token of another account")
        if found.ends - self._now() < _SHORTEST:
            raise NotRenewed("RenewalFailed", f"the target gave a token that ends within {_SHORTEST:.0f} s")
        return found

    def _try(self, state: _State, after: bytes) -> None:
        before = state.kubeconfig
        client = self._connect(Kubeconfig(after, before.anywhere, before.remedy, before.embedded))
        try:
            client.ping()
        except Expected as error:
            raise NotRenewed("RenewalFailed", f"the target did not take the token that it gave: {error}") from None
        finally:
            client.close()

    def _state(self, key: str) -> _State | None:
        with self._lock:
            return self._states.get(key)


def with_token(kubeconfig: bytes, token: str) -> bytes:
    """A kubeconfig whose current user has another token."""
    content = document.first(kubeconfig)
    current = next(e["context"] for e in content["contexts"] if e["name"] == content["current-context"])
    user = next(e for e in content["users"] if e["name"] == current["user"])
    user["user"] = {**user["user"], "token": token}
    return yaml.safe_dump(content, sort_keys=False).encode()


def _shown(state: _State, error: Expected) -> str:
    """Why there is no new token. What the target says of it is not told: it might quote one."""
    if not isinstance(error, TargetRefused):
        return str(error)
    account = state.lifetime.account
    assert account is not None
    if error.code == 403:
        return (
            f"the target refuses a new token (403): the ServiceAccount needs the right create on serviceaccounts/token "
            f"of {account.namespace}/{account.name}; `treeplane target add` gives it"
        )
    return f"the target refuses a new token ({error.code})"


def _chance(key: str) -> float:
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) / 2**32
