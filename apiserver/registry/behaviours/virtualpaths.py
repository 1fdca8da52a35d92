"""Files of a volume that would stand in each other's way: one path twice, or one below another. Called by podwarnings.

The kubelet would find out; kube-apiserver warns, in these words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from apiserver.registry.behaviours.base import Object


class _File(NamedTuple):
    path: str
    source: str = ""

    def __str__(self) -> str:
        return f'"{self.path}" ({self.source})' if self.source else f'"{self.path}"'


def warnings(volumes: Iterable[Object]) -> Iterator[str]:
    for volume in volumes:
        for field, what, named in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
            source = volume.get(field) or {}
            yield from _overlaps(volume, f'{what} "{source.get(named) or ""}"', _items(source))
        yield from _overlaps(volume, "DownwardAPI", _items(volume.get("downwardAPI") or {}))
        yield from _projected(volume)


def _projected(volume: Object) -> Iterator[str]:
    found: list[_File] = []
    for source in (volume.get("projected") or {}).get("sources") or ():
        if not any(value is not None for value in source.values()):
            yield f'volume "{volume.get("name")}" (Projected) has no sources provided'
        found += _files(source)
    yield from _overlaps(volume, "Projected", found)


def _files(source: Object) -> list[_File]:
    """Of one source of a projected volume."""
    for field, what in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if source.get(field):
            return _items(source[field], f'{what} "{source[field].get("name") or ""}"')
    if source.get("downwardAPI"):
        return _items(source["downwardAPI"], "DownwardAPI")
    if source.get("serviceAccountToken"):
        return [_File(source["serviceAccountToken"].get("path") or "", "ServiceAccountToken")]
    bundle = source.get("clusterTrustBundle")
    if bundle:
        name = bundle.get("name") or bundle.get("signerName") or ""
        return [_File(bundle.get("path") or "", f'ClusterTrustBundle "{name}"')]
    certificate = source.get("podCertificate") or {}
    parts = {"certificateChainPath": "chain", "keyPath": "key", "credentialBundlePath": "credential bundle"}
    return [_File(certificate[f], f"PodCertificate {what}") for f, what in parts.items() if certificate.get(f)]


def _items(source: Object, named: str = "") -> list[_File]:
    return [_File(item.get("path") or "", named) for item in source.get("items") or ()]


def _overlaps(volume: Object, what: str, files: Iterable[_File]) -> Iterator[str]:
    seen: list[_File] = []
    for file in files:
        this = file._replace(path=file.path.rstrip("/"))
        for other in seen:
            if this.path and other.path and _meet(this.path, other.path):
                yield f'volume "{volume.get("name")}" ({what}): overlapping paths: {this} with {other}'
        seen.append(this)


def _meet(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
