"""Keeps the Lease on one real sync target, over whichever connection there is to it: one thread a target.

Made by keepers.py for targets that are not embedded. Nothing is written to such a target but with its Lease.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import orjson

from reconciler.controllers.failures import Expected, log_failure
from reconciler.syncing.client import TargetClient
from reconciler.syncing.errors import TargetRefused
from reconciler.syncing.lease import NAMESPACE, Contender, Lease, LeaseSettings, ticking

Object = dict[str, Any]

_LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
_RIGHTS = (
    f"its credentials need the rights get, create and update on leases.coordination.k8s.io in namespace {NAMESPACE}, "
    "and create on namespaces unless that is there"
)
_MANAGED = {"app.kubernetes.io/managed-by": "treeplane"}
_SELDOM = 10.0
"""Seconds between two attempts at most, where none succeeds."""


class OnTarget:
    """The Lease, over a connection."""

    def __init__(self, client: TargetClient, name: str) -> None:
        self._client, self._where = client, f"{_LEASES}/{name}"

    def get(self) -> Object | None:
        try:
            return self._client.leased("GET", self._where)
        except TargetRefused as error:
            if error.code == 404:
                return None
            raise

    def create(self, lease: Object) -> Object:
        body = orjson.dumps({**lease, "metadata": {**lease["metadata"], "labels": _MANAGED}})
        try:
            return self._client.leased("POST", _LEASES, body)
        except TargetRefused as error:
            if error.code != 404:
                raise
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": _MANAGED}}
        try:
            self._client.leased("POST", "/api/v1/namespaces", orjson.dumps(space))
        except TargetRefused as error:
            if error.code != 409:
                raise
        return self._client.leased("POST", _LEASES, body)

    def replace(self, lease: Object) -> Object:
        return self._client.leased("PUT", self._where, orjson.dumps(lease))


class Keeper:
    """`name`: the Lease's. `changed`: told (whether it may be written now) when that or its reason is another."""

    def __init__(
        self, name: str, contender: Contender, settings: LeaseSettings, changed: Callable[[bool], None]
    ) -> None:
        self._name, self._contender, self._settings, self._changed = name, contender, settings, changed
        self._lease: Lease | None = None
        self._trouble, self._told = "", ""
        self._refused = False
        self._failures = 0
        self._since = ticking()
        self._wake, self._stopped = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def use(self, client: TargetClient | None) -> Lease | None:
        """The connection from now on, None for none; what it may write by. It may be to another cluster: the Lease is
        asked for anew."""
        before, self._lease = self._lease, None
        if before is not None:
            before.end("there is a newer connection")
        if client is not None:
            self._lease = Lease(self._name, self._contender, OnTarget(client, self._name), self._settings)
        self._failures = 0
        self._wake.set()
        return self._lease

    @property
    def uid(self) -> str:
        """See Lease."""
        lease = self._lease
        return lease.uid if lease is not None else ""

    def why(self, lease: Lease | None = None) -> str:
        """Why nothing may be written by a Lease that `use` gave, the newest if none is named; "" if it may."""
        lease = lease or self._lease
        why = lease.why() if lease is not None else "there is no connection"
        return f"{why} ({self._trouble})" if why and self._trouble else why

    def waited(self) -> float:
        """Seconds since it could be written last, or since the start. Endless, where waiting is no remedy."""
        if not self.why():
            return 0.0
        return math.inf if self._refused else ticking() - self._since

    def end(self) -> None:
        """Nothing new is written from now on, and the Lease is not renewed."""
        lease = self._lease
        if lease is not None:
            lease.end("the server is stopping")
        self._stopped.set()
        self._wake.set()

    def rest(self, seconds: float) -> bool:
        """After `end`: wait until the Lease is asked for no more; whether that is so. What is being asked for when the
        end comes may still be got, and is known then."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def release(self) -> None:
        """Give the Lease back, after `rest`."""
        lease = self._lease
        if lease is None:
            return
        try:
            lease.release()
        except Expected as error:
            log_failure("lease", self._name, error)

    def _run(self) -> None:
        while not self._stopped.is_set():
            pause = self._step()
            self._note()
            self._wake.wait(pause)
            self._wake.clear()

    def _step(self) -> float:
        lease = self._lease
        if lease is None:
            return self._settings.renew
        try:
            pause = lease.step()
            self._trouble, self._refused, self._failures = "", False, 0
            return pause
        except Expected as error:
            self._refused = isinstance(error, TargetRefused) and error.code in (401, 403)
            trouble = f"{error}: {_RIGHTS}" if self._refused else str(error)
            failure: Exception = Expected(trouble)
        except Exception as error:
            self._refused, trouble, failure = False, type(error).__name__, error
        if trouble != self._trouble:
            log_failure("lease", self._name, failure)
        self._trouble = trouble
        self._failures += 1
        if lease.left() > 0:
            return self._settings.look
        return min(self._settings.look * float(2 ** min(self._failures - 1, 10)), _SELDOM)

    def _note(self) -> None:
        why = self.why()
        if not why:
            self._since = ticking()
        if why != self._told:
            self._told = why
            self._changed(not why)
