"""Kubeconfig files as a kubectl plugin needs them: which server and who, and the contexts that it writes.

$KUBECONFIG may list several files, of which the first that says something wins; only the first
file is written, and everything else in it stays.
"""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.plugin import yamltext
from reconciler.plugin.errors import PluginError

Entry = dict[str, Any]
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class KubeconfigError(PluginError):
    """The files do not say what is needed; the message says what and where."""


class Credentials(NamedTuple):
    """Entries of the current context: cluster (TLS) and user."""

    cluster: Entry
    user: Entry


class _Document(NamedTuple):
    path: Path
    content: Entry


class KubeconfigFiles:
    """The files, read. The first is the one to write."""

    def __init__(self, documents: list[_Document]) -> None:
        self._documents = documents
        self._first, self._written = documents[0]

    @staticmethod
    def load(path: str = "") -> KubeconfigFiles:
        """From `path`, else $KUBECONFIG, else ~/.kube/config. Raises KubeconfigError."""
        listed = [path] if path else [p for p in os.environ.get("KUBECONFIG", "").split(os.pathsep) if p]
        paths = [Path(p) for p in listed] or [Path.home() / ".kube" / "config"]
        if not any(p.exists() for p in paths):
            raise KubeconfigError(f"{paths[0]}: no such kubeconfig; set KUBECONFIG to the one that the server wrote")
        return KubeconfigFiles([_Document(p, _read(p)) for p in paths])

    def server(self, context: str | None = None) -> str | None:
        """The URL of a context's cluster: the current one's, or of the one named (None: there is none such)."""
        found = self._find("contexts", context) if context else self._current()
        if found is None:
            return None
        cluster = self._find("clusters", found.get("cluster", ""))
        return str(cluster.get("server", "")) if cluster else None

    def credentials(self) -> Credentials:
        context = self._current()
        cluster = self._find("clusters", context.get("cluster", ""))
        if cluster is None or not cluster.get("server"):
            raise KubeconfigError(f"{self._first}: the current context's cluster is not defined")
        return Credentials(cluster, self._find("users", context.get("user", "")) or {})

    def remember(self, previous: str, current: str, server: str) -> None:
        """Keep the current context as `previous`, make one named `current` for `server` and go there."""
        context, (cluster, _) = self._current(), self.credentials()
        written = self._written
        _set(written, "clusters", previous, "cluster", cluster)
        _set(written, "contexts", previous, "context", {**context, "cluster": previous})
        _set(written, "clusters", current, "cluster", {**cluster, "server": server})
        # A namespace chosen in the workspace left behind means nothing in the next one.
        kept = {key: value for key, value in context.items() if key != "namespace"}
        _set(written, "contexts", current, "context", {**kept, "cluster": current})
        written["current-context"] = current
        _write(self._first, written)

    def add(self, name: str, server: str, *, overwrite: bool, enter: bool) -> tuple[bool, bool]:
        """A context for `server`, as who the current one is; the current one from now on if `enter`. Whether there was
        one of that name, and whether another is the current one now. Raises KubeconfigError if there was one that is
        not to be overwritten."""
        there = self._find("contexts", name) is not None
        if there and not overwrite:
            raise KubeconfigError(f'context "{name}" already exists in kubeconfig, use --overwrite to update it')
        context, (cluster, _), before = self._current(), self.credentials(), self._current_name()
        written = self._written
        _set(written, "clusters", name, "cluster", {**cluster, "server": server})
        _set(written, "contexts", name, "context", {**context, "cluster": name})
        if enter:
            written["current-context"] = name
        _write(self._first, written)
        return there, enter and before != name

    def alone(self, name: str, server: str) -> str:
        """A kubeconfig, as text, with one context for `server`, as who the current one is. It holds what that holds of
        secrets."""
        cluster, user = self.credentials()
        document: Entry = {"apiVersion": "v1", "kind": "Config", "current-context": name}
        _set(document, "clusters", name, "cluster", {**cluster, "server": server})
        _set(document, "contexts", name, "context", {"cluster": name, "user": name})
        _set(document, "users", name, "user", user)
        return yamltext.written(document)

    def exchange(self, previous: str, current: str) -> None:
        """Swap the two contexts and go to `current`."""
        before, now = self._find("contexts", previous) or {}, self._current()
        clusters = [self._find("clusters", context.get("cluster", "")) or {} for context in (before, now)]
        written = self._written
        _set(written, "clusters", current, "cluster", clusters[0])
        _set(written, "contexts", current, "context", {**before, "cluster": current})
        _set(written, "clusters", previous, "cluster", clusters[1])
        _set(written, "contexts", previous, "context", {**now, "cluster": previous})
        written["current-context"] = current
        _write(self._first, written)

    def _current_name(self) -> str:
        name = next(filter(None, (d.content.get("current-context") for d in self._documents)), "")
        if not name:
            raise KubeconfigError(f"{self._first}: no current context is set")
        return str(name)

    def _current(self) -> Entry:
        name = self._current_name()
        found = self._find("contexts", name)
        if found is None:
            raise KubeconfigError(f'{self._first}: the current context "{name}" is not defined')
        return found

    def _find(self, section: str, name: str) -> Entry | None:
        """The first entry of that name, without its name; file names in it made absolute, so that a copy is as good."""
        for document in self._documents:
            for entry in document.content.get(section) or ():
                if entry.get("name") == name:
                    found: Entry = dict(entry.get(section[:-1]) or {})
                    return {k: _absolute(document.path, v) if k in _FILES else v for k, v in found.items()}
        return None


def _set(document: Entry, section: str, name: str, key: str, value: Entry) -> None:
    entries = document[section] = document.get(section) or []
    for entry in entries:
        if entry.get("name") == name:
            entry[key] = dict(value)
            return
    entries.append({key: dict(value), "name": name})


def _absolute(kubeconfig: Path, file: str) -> str:
    """File names in a kubeconfig count from its directory."""
    return str(kubeconfig.parent.resolve() / file) if file else file


def _read(path: Path) -> Entry:
    """Empty if absent."""
    if not path.exists():
        return {"apiVersion": "v1", "kind": "Config"}
    try:
        document = yamltext.read(path) or {}
    except (OSError, yamltext.UnreadableYaml) as error:
        raise KubeconfigError(f"{path}: cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise KubeconfigError(f"{path}: not a kubeconfig")
    return document


def _write(path: Path, document: Entry) -> None:
    """Whole or not at all, with the mode that it had."""
    target = path.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o600
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(yamltext.written(document))
    fresh = Path(name)
    fresh.chmod(mode)
    fresh.replace(target)
