"""Who may write to a real sync target: a Lease on the target itself, held by one server at a time.

The status branch says which server holds the fleet; a server that is cut off from git does not read it. So each target
has a Lease too, with the writer's name and epoch. It lasts 15 s, is renewed every 5, and nothing is written with less
than 5 s left, by a clock that only goes forward. A later epoch takes a Lease that is held, and waits until its holder
must have noticed; an equal one waits until it has run out; an earlier one does not get it. Whether another's has run
out is told by our own clock, from when we saw it last change: clocks of other machines are not asked.

`Lease` is the rules, without thread or network; keeper.py runs them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.model import clock
from apiserver.model.identity import base36_sha224
from reconciler.syncing.errors import TargetRefused

Object = dict[str, Any]

NAMESPACE = "treeplane-system"
EPOCH = "treeplane.dev/epoch"
"""Annotation: that of the holder."""
WAITS = "treeplane.dev/waits"
"""Annotation: it was taken from one who may not have noticed yet, so nobody writes before a wait is over, not even who
gets it next."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_WRITER = re.compile(r"[0-9A-Za-z-]{1,64}/[0-9]{1,20}")
_LONGEST = 3600


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """Seconds. `duration`: of the Lease; `renew`: between two renewals; `reserve`: with less than this left nothing is
    written; `look`: between two looks at somebody else's, and after a failure."""

    duration: int = 15
    renew: float = 5.0
    reserve: float = 5.0
    look: float = 1.0


@dataclass(frozen=True, slots=True)
class Contender:
    """As whom a server has Leases. `writer`, `epoch`: see statusbranch/claim. `ended`: an earlier start of this very
    server that has certainly ended, "" for none: what it held is ours at once."""

    writer: str
    epoch: int
    ended: str = ""


class Leases(Protocol):
    """The Lease on the target. `create` and `replace` return it as it is then and raise Refused 409 where another was
    faster; all of them raise what requests raise."""

    def get(self) -> Object | None: ...

    def create(self, lease: Object) -> Object: ...

    def replace(self, lease: Object) -> Object: ...


def name_of(fleet: str) -> str:
    """The Lease's name for a fleet's id, which may be any text."""
    return f"treeplane-{fleet if _NAME.fullmatch(fleet) else base36_sha224(fleet)[:32]}"


def ticking() -> float:
    """Seconds on a clock that only goes forward, and goes on while the machine sleeps, where there is one."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lease:
    """One server's view of one Lease. `step` from one thread; the rest from any. `now`: see `ticking`."""

    def __init__(
        self,
        name: str,
        contender: Contender,
        leases: Leases,
        settings: LeaseSettings = LeaseSettings(),
        now: Callable[[], float] = ticking,
    ) -> None:
        self.name, self._self, self._leases, self._settings, self._now = name, contender, leases, settings, now
        self._held: Object | None = None
        self._from = self._until = 0.0
        self._seen: tuple[str, float] = ("", 0.0)
        self._why = "it was not asked for yet"
        self._over = False

    @property
    def uid(self) -> str:
        """Of the Lease while it is held, else "": two targets that are one cluster have one Lease."""
        held = self._held
        return str(held["metadata"].get("uid", "")) if held is not None else ""

    def left(self) -> float:
        """Seconds for which writes may go on; 0: none may."""
        now, until = self._now(), self._until - self._settings.reserve
        return max(until - now, 0.0) if now >= self._from and not self._over else 0.0

    def why(self) -> str:
        """Why nothing may be written, "" if it may. The text changes when its meaning does."""
        return "" if self.left() > 0 else f"Lease {NAMESPACE}/{self.name} of the target is not ours: {self._why}"

    def step(self) -> float:
        """Get it, or keep it; the seconds until the next step."""
        begun = self._now()
        try:
            if self._held is not None:
                return self._keep(begun)
            found = self._leases.get()
            return self._begin(begun) if found is None else self._look(found, begun)
        except TargetRefused as error:
            if error.code != 409:
                raise
            self._lose("another server was faster")
            return self._settings.look

    def end(self, why: str) -> None:
        """Nothing is written any more, whatever the target says."""
        self._why, self._over = why, True

    def release(self) -> None:
        """Give it back, after `end`, once nothing is being written any more and nobody steps. Also where it was renewed
        since we saw it: over another target that is the same cluster, or by a request whose answer was lost."""
        held, self._held = self._held, None
        if held is None:
            return
        try:
            self._leases.replace(self._said(held, give_back=True))
        except TargetRefused as error:
            if error.code != 409:
                raise
            found = self._leases.get()
            if found is not None and self._is_ours(found):
                self._leases.replace(self._said(found, give_back=True))

    def _begin(self, begun: float) -> float:
        """Where there is none nobody has it: who takes it away by hand says so."""
        empty: Object = {"metadata": {"name": self.name, "namespace": NAMESPACE}, "spec": {"leaseTransitions": -1}}
        return self._won(self._leases.create(self._said(empty)), begun, begun)

    def _keep(self, begun: float) -> float:
        assert self._held is not None
        try:
            self._held = self._leases.replace(self._said(self._held))
        except TargetRefused as error:
            if error.code != 409:
                raise
            return self._find(begun)
        self._until = begun + self._settings.duration
        return self._pause()

    def _find(self, begun: float) -> float:
        """It was changed. By us, where another target is the same cluster: then it is kept."""
        found = self._leases.get()
        if found is None or not self._is_ours(found):
            self._lose("another server took it")
            return self._begin(begun) if found is None else self._look(found, begun)
        self._held = self._leases.replace(self._said(found))
        self._until = begun + self._settings.duration
        return self._pause()

    def _is_ours(self, found: Object) -> bool:
        return (_holder(found), _epoch(found)) == (self._self.writer, self._self.epoch)

    def _look(self, found: Object, begun: float) -> float:
        """At one that we have not: take it, or wait."""
        holder, epoch, waits = _holder(found), _epoch(found), WAITS in _annotations(found)
        if epoch > self._self.epoch:
            self._why = self._later(holder, epoch)
            return self._settings.renew
        if not waits and holder in ("", self._self.writer, self._self.ended):
            return self._take(found, begun, wait=0.0)
        if epoch < self._self.epoch or holder in ("", self._self.writer, self._self.ended):
            return self._take(found, begun, wait=self._lasting(found))
        revision = str(found["metadata"].get("resourceVersion", ""))
        if self._seen[0] != revision:
            self._seen = revision, self._now()
        rest = self._seen[1] + self._lasting(found) - self._now()
        if rest <= 0:
            return self._take(found, begun, wait=0.0)
        self._why = f"{_called(holder)} has it, and is waited for until it gives it back or is gone"
        return min(rest, self._settings.look)

    def _take(self, found: Object, begun: float, wait: float) -> float:
        """`wait`: seconds after which whoever had it must have noticed."""
        held = self._leases.replace(self._said(found, waits=wait > 0))
        return self._won(held, begun, self._now() + wait if wait else begun)

    def _won(self, held: Object, begun: float, since: float) -> float:
        self._held, self._from, self._until = held, since, begun + self._settings.duration
        if since > begun:
            self._why = "it was taken over, and whoever had it may still write for a moment"
        else:
            self._why = "it ran out, since the target did not answer"
        return self._pause()

    def _lose(self, why: str) -> None:
        self._held, self._until, self._why = None, 0.0, why

    def _pause(self) -> float:
        wait = self._from - self._now()
        return min(self._settings.renew, wait) if wait > 0 else self._settings.renew

    def _lasting(self, found: Object) -> float:
        said = _spec(found).get("leaseDurationSeconds")
        return float(max(self._settings.duration, min(said, _LONGEST) if isinstance(said, int) else 0))

    def _later(self, holder: str, epoch: int) -> str:
        return (
            f"{_called(holder)} had it with epoch {epoch}, later than ours, {self._self.epoch}: it took the fleet "
            f"over. If there is no such server any more, let this one have it:\n"
            f"  kubectl annotate --namespace {NAMESPACE} lease {self.name} {EPOCH}-"
        )

    def _said(self, before: Object, *, waits: bool | None = None, give_back: bool = False) -> Object:
        """What `before` becomes. `waits` None: as long as our own wait is not over."""
        spec, moment = dict(_spec(before)), clock.micro_now()
        if give_back:
            spec.pop("holderIdentity", None)
        elif spec.get("holderIdentity") != self._self.writer:
            transitions = spec.get("leaseTransitions")
            spec["leaseTransitions"] = transitions + 1 if isinstance(transitions, int) else 0
            spec |= {"holderIdentity": self._self.writer, "acquireTime": moment}
        spec |= {"renewTime": moment, "leaseDurationSeconds": self._settings.duration}
        annotations = {**_annotations(before), EPOCH: str(self._self.epoch)}
        annotations.pop(WAITS, None)
        if self._now() < self._from if waits is None else waits:
            annotations[WAITS] = "true"
        metadata = {k: v for k, v in before["metadata"].items() if k != "managedFields"} | {"annotations": annotations}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def _spec(lease: Object) -> Object:
    spec = lease.get("spec")
    return spec if isinstance(spec, dict) else {}


def _annotations(lease: Object) -> Object:
    return lease["metadata"].get("annotations") or {}


def _holder(lease: Object) -> str:
    return str(_spec(lease).get("holderIdentity") or "")


def _called(holder: str) -> str:
    """A name that a target told, for a text that people read."""
    return holder if _WRITER.fullmatch(holder) else "another server"


def _epoch(lease: Object) -> int:
    said = str(_annotations(lease).get(EPOCH, ""))
    return int(said) if said.isdecimal() and len(said) < 19 else 0
