"""Conversion of custom resources by the webhook that their definition names.

The catalog binds a converter to the kinds of such a definition; conversion.py calls it where it finds one. It is
synchronous and may take as long as the webhook does, so the endpoints run whatever may convert in threads set apart
(endpoints/lanes.py). What was converted is remembered for a while by its content, the definition and the version, so
that a list that is read again asks for what changed alone. A webhook that cannot be reached is not tried again at once.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

import orjson

from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.outbound import Outbound
from apiserver.registry.posting import Failed, PostTarget, post
from apiserver.registry.reviews import ConversionReview, Wrong
from apiserver.registry.served import ServedKind
from apiserver.registry.webhookspec import Conversion, WebhookService
from apiserver.storage.protocol import Store

Object = dict[str, Any]

BATCH = 500
"""Objects in one question."""
_REMEMBERED = 128 * 1024 * 1024
_FRESH = 60.0
"""Seconds for which an object that did not change need not be asked about again."""
_PAUSE = 2.0
"""Seconds for which a webhook that could not be reached is left alone."""
_SLICES, _ENDPOINTS = "endpointslices.discovery.k8s.io", "endpoints"
_OF_SERVICE = "kubernetes.io/service-name"


class Memo:
    """What objects are in other versions, as JSON. Shared by all converters of a process; safe from every thread."""

    def __init__(self, most: int = _REMEMBERED) -> None:
        """`most`: bytes of objects that are kept."""
        self._most, self._size = most, 0
        self._found: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: bytes) -> Object | None:
        with self._lock:
            entry = self._found.get(key)
        if entry is None or entry[0] < time.monotonic():
            return None
        found: Object = orjson.loads(entry[1])
        return found

    def put(self, key: bytes, obj: Object) -> None:
        value = bytes(memoryview(orjson.dumps(obj)))
        with self._lock:
            before = self._found.pop(key, None)
            self._size += len(value) - (len(before[1]) if before else 0)
            self._found[key] = (time.monotonic() + _FRESH, value)
            while self._size > self._most:
                _, (_, gone) = self._found.popitem(last=False)
                self._size -= len(gone)


class Webhooks:
    """Binds converters to kinds. One per store."""

    def __init__(self, store: Store, outbound: Outbound) -> None:
        self._store, self._outbound, self._memo = store, outbound, Memo()

    def bind(self, kind: ServedKind, cluster: str) -> ServedKind:
        """The kind as the workspace serves it: with its webhook, if it has one."""
        if kind.conversion is None:
            return kind
        converter = Converter(kind.conversion, self._store, cluster, self._outbound, self._memo)
        return replace(kind, converter=converter, digest=f"{kind.digest}@{cluster}")


class Converter:
    """Of one definition in one workspace."""

    def __init__(self, conversion: Conversion, store: Store, cluster: str, outbound: Outbound, memo: Memo) -> None:
        self._conversion = conversion
        self._store, self._cluster = store, cluster
        self._outbound, self._memo = outbound, memo
        self._failed: tuple[float, str] = (0.0, "")

    def convert(self, objects: Sequence[Object], kind: ServedKind) -> list[Object]:
        """Each object in the version of `kind`; none of them is in it yet. They may lack a resourceVersion and get back
        the one they had. Raises StatusError 500, as Kubernetes does, with what the webhook is to blame for."""
        bare = [_without_revision(obj) for obj in objects]
        keys = [_key(obj, kind) for obj in bare]
        found = [self._memo.get(key) for key in keys]
        missing = [index for index, obj in enumerate(found) if obj is None]
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            for index, made in zip(part, self._asked([bare[i] for i in part], kind), strict=True):
                kind.schema.prune(made)
                self._memo.put(keys[index], made)
                found[index] = made
        return [_with_revision(made or {}, obj) for made, obj in zip(found, objects, strict=True)]

    def _asked(self, objects: list[Object], kind: ServedKind) -> list[Object]:
        what = f"{objects[0].get('apiVersion')}, Kind={kind.kind}"
        try:
            review = ConversionReview(objects, kind.api_version, self._conversion.reviews)
            return review.converted(self._answer(review.body()))
        except Wrong as error:
            raise _error(f"conversion webhook for {what} {error}") from None
        except Failed as error:
            raise _error(f"conversion webhook for {what} failed: {error}") from None

    def _answer(self, body: bytes) -> bytes:
        until, why = self._failed
        if time.monotonic() < until:
            raise Failed(why)
        try:
            return post(self._outbound, self._target(), body)
        except Failed as error:
            if error.remote:
                self._failed = (time.monotonic() + _PAUSE, str(error))
            raise

    def _target(self) -> PostTarget:
        conversion = self._conversion
        if conversion.service is None:
            return PostTarget(conversion.url, conversion.ca)
        service = conversion.service
        host = f"{service.name}.{service.namespace}.svc"
        url = f"https://{host}:{service.port}{service.path}"
        return PostTarget(url, conversion.ca, tuple(_addresses(self._store, self._cluster, service)))


def _addresses(store: Store, cluster: str, service: WebhookService) -> list[tuple[str, int]]:
    """Where the Service's programs listen, as its EndpointSlices or Endpoints say. Raises Failed."""
    found = _read(store, Key("services", cluster, service.namespace, service.name))
    if found is None:
        raise Failed(f'service "{service.name}" not found', remote=False)
    ports = (found.get("spec") or {}).get("ports") or ()
    names = [p.get("name") or "" for p in ports if p.get("port") == service.port]
    if not names:
        raise Failed(f'no service port {service.port} found for service "{service.name}"', remote=False)
    reached = [*_of_slices(store, cluster, service, names[0]), *_of_endpoints(store, cluster, service, names[0])]
    if not reached:
        raise Failed(f'no endpoints available for service "{service.name}"', remote=False)
    return reached


def _of_slices(store: Store, cluster: str, service: WebhookService, port: str) -> Iterator[tuple[str, int]]:
    for record in store.scan(_SLICES, cluster, service.namespace).records:
        found = orjson.loads(record.value)
        if (found["metadata"].get("labels") or {}).get(_OF_SERVICE) != service.name:
            continue
        numbers = [p["port"] for p in found.get("ports") or () if (p.get("name") or "") == port and p.get("port")]
        for endpoint in found.get("endpoints") or () if numbers else ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from ((str(address), numbers[0]) for address in endpoint.get("addresses") or ())


def _of_endpoints(store: Store, cluster: str, service: WebhookService, port: str) -> Iterator[tuple[str, int]]:
    found = _read(store, Key(_ENDPOINTS, cluster, service.namespace, service.name)) or {}
    for subset in found.get("subsets") or ():
        numbers = [p["port"] for p in subset.get("ports") or () if (p.get("name") or "") == port and p.get("port")]
        if numbers:
            yield from ((str(a.get("ip")), numbers[0]) for a in subset.get("addresses") or ())


def _read(store: Store, key: Key) -> Object | None:
    record = store.get(key)
    return orjson.loads(record.value) if record else None


def _key(obj: Object, kind: ServedKind) -> bytes:
    of_kind = hashlib.sha256(kind.digest.encode()).digest()
    return hashlib.blake2b(codec.encode(obj), digest_size=16, key=of_kind).digest()


def _without_revision(obj: Object) -> Object:
    if "resourceVersion" not in obj["metadata"]:
        return obj
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}}


def _with_revision(made: Object, original: Object) -> Object:
    if "resourceVersion" in original["metadata"]:
        made["metadata"]["resourceVersion"] = original["metadata"]["resourceVersion"]
    return made


def _error(message: str) -> StatusError:
    return StatusError(500, "", message)  # without a reason, as in Kubernetes
