"""A cluster as its administrator reaches it: by kubectl and his kubeconfig, whose programs run here, as he.

The kubeconfig is read by kubectl alone, but for what a server needs to know of the cluster, and is kept nowhere.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from reconciler.commands.failure import Failure
from reconciler.loading.changeset import ChangeKind
from reconciler.syncing.lifetime import LARGEST

Object = dict[str, Any]

MANAGER = "treeplane-target"
"""Whose fields these are in server-side apply: not those of the server, which syncs as another."""
_HINT = "try it with kubectl and this kubeconfig first"
_SECONDS = 120
"""Of one call: who signs in may have to type something."""


class AppliedObject(NamedTuple):
    """`name`: `ClusterRole treeplane`; `value`: as it was to be."""

    name: str
    change: ChangeKind
    value: Object


class AdminCluster:
    """`context`: "" for the current one. Every call raises Failure, with kubectl's words."""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        if not kubeconfig.is_file():
            raise Failure(f"there is no file {kubeconfig}", "name the kubeconfig of the cluster's administrator", 2)
        program = shutil.which("kubectl")
        if program is None:
            raise Failure(
                "there is no kubectl in PATH, which asks the cluster", "install it: kubernetes.io/docs/tasks/tools"
            )
        self._kubeconfig = kubeconfig
        self._command = [program, "--kubeconfig", str(kubeconfig), *(["--context", context] if context else [])]

    def sign_in(self) -> None:
        """What a program of the kubeconfig asks the user, or tells him, he sees; later calls go by what it kept."""
        try:
            command = [*self._command, "get", "--raw", "/version"]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Failure(f"the cluster of {self._kubeconfig} did not answer within {_SECONDS} s") from None
        if done.returncode != 0:
            raise Failure(f"kubectl does not reach the cluster of {self._kubeconfig}", _HINT)

    def config(self) -> Object:
        """The kubeconfig's context alone, with what its files hold."""
        return self._asked("config", "view", "--raw", "--flatten", "--minify", "-o", "json")

    def apply(self, objects: Sequence[Object]) -> list[AppliedObject]:
        """Has them be there as they are given; the fields that others have set stay."""
        before = self.there(objects)
        with _file(objects) as file:
            self._run("apply", "--server-side", f"--field-manager={MANAGER}", "-f", file)
        after = self.there(objects)
        return [AppliedObject(name_of(each), _change(before, after, each), each) for each in objects]

    def would_apply(self, objects: Sequence[Object]) -> list[AppliedObject]:
        """What of it is not there yet. Nothing is written."""
        before = self.there(objects)
        return [
            AppliedObject(name_of(each), ChangeKind.CONFIGURED if name_of(each) in before else ChangeKind.CREATED, each)
            for each in objects
        ]

    def there(self, objects: Sequence[Object]) -> dict[str, str]:
        """Those that are there, by name, with their resourceVersion."""
        with _file(objects) as file:
            found = self._asked("get", "-f", file, "--ignore-not-found", "-o", "json")
        items = found.get("items", [found] if found.get("metadata") else [])
        return {name_of(each): each["metadata"]["resourceVersion"] for each in items}

    def token(self, namespace: str, name: str, hours: int) -> str:
        """A new token of a ServiceAccount, for so long or as long as the cluster gives one."""
        found = self._run("create", "token", name, "-n", namespace, f"--duration={hours}h").strip()
        if not found or len(found) > LARGEST or not found.isprintable():
            raise Failure("the cluster answered a request for a token with something else")
        return found

    def get(self, *arguments: str) -> list[Object]:
        """The items that a `kubectl get` finds."""
        found = self._asked("get", *arguments, "-o", "json")
        items: list[Object] = found.get("items", [])
        return items

    def delete(self, objects: Sequence[Object]) -> list[AppliedObject]:
        before = self.there(objects)
        with _file(objects) as file:
            self._run("delete", "-f", file, "--ignore-not-found", "--wait=false")
        return [AppliedObject(name_of(o), ChangeKind.DELETED, o) for o in objects if name_of(o) in before]

    def _asked(self, *arguments: str) -> Object:
        said = self._run(*arguments)
        try:
            found = json.loads(said) if said.strip() else {}
        except ValueError:
            raise Failure(f"kubectl {arguments[0]} did not answer with JSON") from None
        return found if isinstance(found, dict) else {}

    def _run(self, *arguments: str) -> str:
        try:
            done = subprocess.run(
                [*self._command, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise Failure(f"the cluster of {self._kubeconfig} did not answer within {_SECONDS} s") from None
        except OSError as error:
            raise Failure(f"kubectl cannot be run: {error.strerror}") from None
        if done.returncode != 0:
            what = shlex.join(each for each in arguments if not each.startswith("/"))
            raise Failure(f"kubectl {what}: {done.stderr.strip()}", _HINT)
        return done.stdout


def name_of(obj: Object) -> str:
    metadata = obj["metadata"]
    within = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj['kind']} {within}{metadata['name']}"


def _change(before: dict[str, str], after: dict[str, str], obj: Object) -> ChangeKind:
    name = name_of(obj)
    if name not in before:
        return ChangeKind.CREATED
    return ChangeKind.UNCHANGED if before[name] == after.get(name) else ChangeKind.CONFIGURED


@contextmanager
def _file(objects: Sequence[Object]) -> Iterator[str]:
    """A file with these objects: standard input stays the user's, whose program may ask him something."""
    with tempfile.NamedTemporaryFile("w", prefix="treeplane-", suffix=".json") as held:
        json.dump({"apiVersion": "v1", "kind": "List", "items": list(objects)}, held)
        held.flush()
        yield held.name
