"""Counts the requests of one process: which verb on which kind, how they ended, how long they took.

kube.py tells when one begins and ends. A GET costs about ninety microseconds, so here are a few additions; what they
are called in metrics is found a moment later, once for all that are alike, in the thread that writes them
(metrics/pending). No workspace, no user and no name of an object gets there. Kinds are named that are built in, and a
bounded number of others (metrics/customkinds).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import add
from time import perf_counter

from apiserver.endpoints.kubeexchange import KubeExchange, Seen
from apiserver.endpoints.paths import RequestRoute
from apiserver.metrics import customkinds, pending
from apiserver.metrics.definition import OTHER, Labels
from apiserver.metrics.requests import DURATIONS, INFLIGHT, LISTS, LONG_RUNNING, REQUESTS
from apiserver.registry.kinds import KindTable, common_builtins, kubernetes_builtins

_VERBS = {"get": "GET", "list": "LIST", "watch": "WATCH", "create": "POST", "update": "PUT", "patch": "PATCH",
          "delete": "DELETE", "deletecollection": "DELETECOLLECTION", "apply": "APPLY"}  # fmt: skip
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_READING = frozenset({"GET", "HEAD"})
_APPLY = "application/apply-patch"
_SUBRESOURCES = frozenset({
    "status", "scale", "token", "exec", "attach", "log", "portforward", "proxy", "binding", "eviction", "approval",
    "ephemeralcontainers", "resize", "finalize",
})  # fmt: skip
_RESOURCE = RequestRoute.RESOURCE
_BOUNDS = DURATIONS.bounds
_NOTHING = (0.0,) * (len(_BOUNDS) + 2)
_Key = tuple[str, str, str, str, str, str, bool, int]
"""What was seen of a request, and the code that it was answered with: in one, since one is made for each request."""


class RequestCounts:
    """Of one process; `begin` and `end` are called in its event loop alone."""

    def __init__(self) -> None:
        self.noted = False
        self._tallies: dict[_Key, list[float]] = {}
        self._reading = self._changing = 0
        self._open: dict[Seen, int] = {}
        self._names: dict[Seen, Labels] = {}
        self._custom = customkinds.of_process()

    def begin(self, exchange: KubeExchange) -> float:
        """When it began."""
        if exchange.method in _READING:
            self._reading += 1
        else:
            self._changing += 1
        if not self.noted:
            with pending.lock:
                pending.note(self)
        return perf_counter()

    def waits(self, exchange: KubeExchange) -> None:
        """It is a watch."""
        if exchange.method in _READING:
            self._reading -= 1
        else:
            self._changing -= 1
        asked = exchange.watch = _key(exchange)[:-1]
        with pending.lock:
            self._open[asked] = self._open.get(asked, 0) + 1
            if not self.noted:
                pending.note(self)

    def end(self, exchange: KubeExchange, began: float) -> None:
        seconds, watch = perf_counter() - began, exchange.watch
        key = _key(exchange) if watch is None else (*watch, exchange.status)
        with pending.lock:
            tally = self._tallies.get(key)
            if tally is None:
                tally = self._tallies[key] = [*_NOTHING]
            tally[0] += seconds
            tally[1 + bisect_left(_BOUNDS, seconds)] += 1
            if watch is not None:
                self._open[watch] -= 1
            elif exchange.method in _READING:
                self._reading -= 1
            else:
                self._changing -= 1
            if not self.noted:
                pending.note(self)

    def take(self) -> Callable[[], None]:
        """See pending."""
        tallies, self._tallies = self._tallies, {}
        inflight, still = {"readOnly": self._reading, "mutating": self._changing}, {**self._open}
        self._open = {asked: number for asked, number in still.items() if number}
        return lambda: self._write(tallies, inflight, still)

    def _write(self, tallies: dict[_Key, list[float]], inflight: dict[str, int], still: dict[Seen, int]) -> None:
        requests: dict[Labels, float] = {}
        durations: dict[Labels, list[float]] = {}
        lists: dict[Labels, float] = {}
        for key, tally in tallies.items():
            labels, status, count = self._labels(key[:-1]), key[-1], sum(tally[1:])
            requests[*labels, str(status)] = requests.get((*labels, str(status)), 0) + count
            if labels[0] != "WATCH":
                before = durations.get(labels)
                durations[labels] = [*map(add, before, tally)] if before is not None else tally
            if labels[0] == "LIST" and status == 200:
                lists[labels[1], labels[3], ""] = lists.get((labels[1], labels[3], ""), 0) + count
        pending.write(REQUESTS, requests)
        pending.write(DURATIONS, durations)
        pending.write(LISTS, lists)
        pending.write(INFLIGHT, {(kind,): number for kind, number in inflight.items()})
        open_now: dict[Labels, float] = {}
        for asked, number in still.items():
            labels = self._labels(asked)
            open_now[labels] = open_now.get(labels, 0) + number
        pending.write(LONG_RUNNING, open_now)

    def _labels(self, asked: Seen) -> Labels:
        found = self._names.get(asked)
        if found is None:
            found = self._named(asked)
            if OTHER not in found:  # what somebody may have made up is not kept
                self._names[asked] = found
        return found

    def _named(self, asked: Seen) -> Labels:
        verb, group, version, resource, subresource, scope, is_served = asked
        kind = group, version, resource
        if resource and not (_is_builtin(kind) or (is_served and self._custom.has_name(kind))):
            kind = OTHER, "", OTHER
        below = subresource if subresource in _SUBRESOURCES or not subresource else OTHER
        return (verb, *kind, below, scope)


def _key(exchange: KubeExchange) -> _Key:
    """By what was found out about it before it was answered."""
    place, verb, kind, status = exchange.place, exchange.verb, exchange.kind, exchange.status
    if place is None or place.route is not _RESOURCE:
        return (_method(exchange), "", "", "", "", "", False, status)
    if verb == "patch" and exchange.header(b"content-type").startswith(_APPLY):
        verb = "apply"
    if place.name or verb == "create":
        scope = "resource"
    else:
        scope = "namespace" if place.namespace else "cluster"
    shown = _VERBS.get(verb) or _method(exchange)
    if kind is None:
        return (shown, place.group, place.version, place.resource, place.subresource, scope, False, status)
    return (shown, kind.group, kind.version, kind.resource, place.subresource, scope, True, status)


def _method(exchange: KubeExchange) -> str:
    return exchange.method if exchange.method in _METHODS else OTHER


def _is_builtin(kind: tuple[str, str, str]) -> bool:
    tables: tuple[KindTable, ...] = (common_builtins(), kubernetes_builtins())
    return any(table.by_resource(*kind) is not None for table in tables)
