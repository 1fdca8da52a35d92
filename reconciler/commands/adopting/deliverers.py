"""What Flux and Argo CD are told in a repository: which of its directories they bring to clusters. Their objects are
not taken, since a fleet is what does that here.

Called by grouping and inquiry. What such an object says is a proposal and may say anything: a path counts where there
is such a directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any

from reconciler.layout.manifest import Manifest

_FLUX, _ARGO = "toolkit.fluxcd.io", "argoproj.io"
_OF_ARGO = frozenset({"Application", "ApplicationSet", "AppProject"})
_PART_OF, _PROGRAMS = "app.kubernetes.io/part-of", {"flux": "Flux", "argocd": "Argo CD"}
_MOST = 100
"""Elements and patterns of one ApplicationSet."""


def said_to(manifest: Manifest) -> str:
    """The program whose object this is, "" for none of these."""
    group, _, kind = manifest.gvk
    if group == _FLUX or group.endswith(f".{_FLUX}"):
        return "Flux"
    return "Argo CD" if group == _ARGO and kind in _OF_ARGO else ""


def installs(manifest: Manifest) -> str:
    """The program that this object is a part of, "" for none of these."""
    label = (manifest.value["metadata"].get("labels") or {}).get(_PART_OF)
    return _PROGRAMS.get(label, "") if isinstance(label, str) else ""


def elsewhere(manifest: Manifest) -> str:
    """The namespace in which such an object puts what names none, "" for none."""
    spec = _mapping(manifest.value.get("spec"))
    if "template" in spec:
        spec = _mapping(_mapping(spec["template"]).get("spec"))
    found = _mapping(spec.get("destination")).get("namespace") or spec.get("targetNamespace")
    return found if isinstance(found, str) else ""


def names_directories(manifest: Manifest) -> bool:
    """Whether such an object says what is brought to clusters."""
    return bool(said_to(manifest)) and manifest.gvk.kind in ("Kustomization", "Application", "ApplicationSet")


def named_directories(manifest: Manifest, directories: Iterable[str]) -> Iterator[str]:
    """Those of `directories` that such an object names."""
    there = directories if isinstance(directories, set) else set(directories)
    spec = _mapping(manifest.value.get("spec"))
    if manifest.gvk.kind == "Kustomization":
        yield from _there([spec.get("path")], there)
    elif manifest.gvk.kind == "Application":
        yield from _there(_paths(spec), there)
    elif manifest.gvk.kind == "ApplicationSet":
        yield from _there(_paths(_mapping(_mapping(spec.get("template")).get("spec"))), there)
        yield from _generated(_list(spec.get("generators")), there)


def _paths(spec: dict[str, Any]) -> list[Any]:
    return [_mapping(each).get("path") for each in (spec.get("source"), *_list(spec.get("sources")))]


def _generated(generators: list[Any], there: set[str]) -> Iterator[str]:
    for generator in map(_mapping, generators[:_MOST]):
        elements = _list(_mapping(generator.get("list")).get("elements"))
        yield from _there([_mapping(each).get("path") for each in elements[:_MOST]], there)
        said = [_mapping(each) for each in _list(_mapping(generator.get("git")).get("directories"))[:_MOST]]
        without = [str(each.get("path")) for each in said if each.get("exclude") is True]
        for each in said:
            if each.get("exclude") is not True and isinstance(each.get("path"), str):
                found = (path for path in sorted(there) if path and _matches(path, each["path"]))
                yield from (path for path in found if not any(_matches(path, other) for other in without))


def _matches(path: str, pattern: str) -> bool:
    """`*` stands for one name."""
    names, parts = path.split("/"), _plain(pattern).split("/")
    return len(names) == len(parts) and all(map(fnmatchcase, names, parts))


def _there(paths: Iterable[Any], there: set[str]) -> Iterator[str]:
    for path in paths:
        if isinstance(path, str) and path and _plain(path) in there:
            yield _plain(path)


def _plain(path: str) -> str:
    """Of a path from the top of the repository; what leads out of it is no directory's."""
    found = normpath(path.lstrip("/") or ".")
    return "" if found == "." else found


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
