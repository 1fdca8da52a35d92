"""What renders in tests: a pure function of the files that a program sees, which can be made to fail and to change.

`resources` of a kustomization are files that are taken as they are, or directories with a kustomization of their own;
`namePrefix` goes before names. A file that is not seen is not there. `raw` is the output itself.
"""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Iterable
from typing import Any

import orjson
import yaml

from reconciler.rendering.rendering import Rendered
from reconciler.rendering.request import RenderRequest, Tool

Object = dict[str, Any]


class _Fault(Exception):
    """What is wrong with the files."""


def _object(found: Any) -> Object:
    if not isinstance(found, dict) or not isinstance(found.get("metadata"), dict) or "name" not in found["metadata"]:
        raise _Fault("missing metadata.name in object")
    return found


class FakeRenders:
    """`stamp`: a label that objects get, as of the program's version; `fails`: directories that are not rendered just
    now; `asked`: those that were; `slow`: those that take until `go_on`."""

    def __init__(self, stamp: str = "1") -> None:
        self.stamp = stamp
        self.fails: set[str] = set()
        self.away = False
        self.slow: set[str] = set()
        self.asked: list[str] = []
        self.expected: list[str] = []
        self.seen: dict[str, list[str]] = {}
        self._go_on = threading.Event()
        self._cache: dict[tuple[str, str], Rendered] = {}

    def go_on(self) -> None:
        self._go_on.set()
        self.slow.clear()

    def forget(self) -> None:
        """What was rendered is not kept."""
        self._cache.clear()

    def rendered(self, request: RenderRequest) -> Rendered:
        if self.away or request.directory in self.fails:
            return Rendered(fault="there is no program here", hint="put one here", lasting=False)
        if request.directory in self.slow:
            assert self._go_on.wait(100)
        key = self.stamp, request.digest
        if key not in self._cache:
            self.asked.append(request.directory)
            self._cache[key] = self._made(request)
        return self._cache[key]

    def close(self) -> None:
        """As the real one."""

    def expect(self, requests: Iterable[RenderRequest]) -> None:
        self.expected += [each.directory for each in requests]

    def is_expected(self, request: RenderRequest) -> bool:
        return request.directory in self.slow and request.directory in self.expected

    def is_at_hand(self, request: RenderRequest) -> bool:
        lacks = self.away or request.directory in self.fails
        return lacks or (self.stamp, request.digest) in self._cache

    def version(self, tool: Tool) -> str:
        return "" if self.away else self.stamp

    @property
    def fingerprint(self) -> str:
        return self.stamp

    def _made(self, request: RenderRequest) -> Rendered:
        files = {path: request.repo.blob(entry.id) for path, entry in request.files() if entry.kind == "blob"}
        self.seen[request.directory] = sorted(files)
        try:
            objects = self._build(files, request.directory, request.tool)
        except (_Fault, yaml.YAMLError) as fault:
            return Rendered(fault=str(fault), hint="correct it")
        if isinstance(objects, str):
            return Rendered(objects.encode())
        return Rendered(b"\n---\n".join(map(orjson.dumps, objects)))

    def _build(
        self, files: dict[str, bytes], directory: str, tool: Tool, above: tuple[str, ...] = ()
    ) -> list[Object] | str:
        if directory in above:
            raise _Fault(f"{directory} names itself")
        if tool is Tool.HELM:
            found = [
                data for path, data in sorted(files.items()) if path.startswith(posixpath.join(directory, "templates/"))
            ]
            return [each for data in found for each in yaml.safe_load_all(data)]
        names = ("kustomization.yaml", "kustomization.yml", "Kustomization")
        said = next((files[path] for name in names if (path := posixpath.join(directory, name)) in files), None)
        if said is None:
            raise _Fault(f"{directory} has no kustomization")
        kustomization = yaml.safe_load(said) or {}
        if not isinstance(kustomization, dict):
            raise _Fault("invalid Kustomization")
        if "raw" in kustomization:
            return str(kustomization["raw"])
        objects: list[Object] = []
        for each in kustomization.get("resources", []):
            path = posixpath.normpath(posixpath.join(directory, each))
            if path in files:
                objects += [_object(found) for found in yaml.safe_load_all(files[path]) if found]
            elif any(file.startswith(f"{path}/") for file in files):
                made = self._build(files, path, Tool.KUSTOMIZE, (*above, directory))
                assert not isinstance(made, str)
                objects += made
            else:
                raise _Fault(f"{each}: no such file or directory")
        prefix = kustomization.get("namePrefix") or ""
        for made in objects:
            made["metadata"]["name"] = prefix + made["metadata"]["name"]
            made["metadata"].setdefault("labels", {})["stamp"] = self.stamp
        return [*objects, *self._besides()]

    def _besides(self) -> list[Object]:
        """What this version makes besides."""
        value = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"version-{self.stamp}"}}
        return [value] if self.stamp != "1" else []
