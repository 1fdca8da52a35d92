"""Several users who write at the same time, before anybody serves them. For tests of commits that they share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from support.commitfleet import CommitFleet, a_configmap

from apiserver.admission.committing import CommitSink
from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal
from apiserver.registry import rest
from apiserver.registry.rest_options import WriteOptions
from apiserver.registry.waiter import Waiter
from apiserver.storage.protocol import Op
from reconciler.repository.writtenby import written_by

Object = dict[str, Any]

SIX = ("ann", "bob", "cid", "dan", "eve", "fay")
"""So many that they share a commit."""
CRDS = "customresourcedefinitions.apiextensions.k8s.io"
BUILT_ON = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.io}
spec:
  group: example.io
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
WIDGET = "apiVersion: example.io/v1\nkind: Widget\nmetadata: {name: w}\n"
"""What breaks, in another file, when v1 is not served any more."""


class ManyWriters:
    """Each `ask` returns once its write waits for a commit, and ends with what it was answered."""

    def __init__(self, fleet: CommitFleet, threads: ThreadPoolExecutor) -> None:
        self.fleet, self._threads = fleet, threads

    def ask(self, call: Callable[..., Any], *given: Any, **more: Any) -> Future[Any]:
        waiting = self.fleet.store.count(Internal.INTENT)
        answer = self._threads.submit(call, *given, **more)
        while self.fleet.store.count(Internal.INTENT) == waiting:
            assert not answer.done(), answer.result()
        return answer

    def create(self, path: str, name: str, user: str) -> Future[Any]:
        return self.ask(self.fleet.create, path, "configmaps", a_configmap(name), user)

    def create_for_now(self, path: str, name: str, user: str) -> tuple[Waiter, Future[Any]]:
        """With who waits for it, and may leave."""
        at = self.fleet.at(path, "configmaps", user)
        answer = self.ask(lambda: rest.create(at, "default", a_configmap(name), WriteOptions("test")).obj)
        assert isinstance(at.sink, CommitSink)
        return at.sink.waiter, answer

    def create_all(self, users: Iterable[str], path: str = "root:a") -> list[Future[Any]]:
        """A ConfigMap each, of the user's name."""
        return [self.create(path, user, user) for user in users]

    def break_widgets(self, user: str, path: str = "root:a") -> Future[Any]:
        """A write that is refused, and of which no error names the file: see BUILT_ON."""
        spec = self.fleet.get(path, CRDS, "widgets.example.io")["spec"]
        first, second = spec["versions"]
        unserved = {**spec, "versions": [{**first, "served": False}, second]}
        return self.ask(self.fleet.change, path, CRDS, "widgets.example.io", user=user, spec=unserved)


def judgements(fleet: CommitFleet) -> list[int]:
    """The numbers of writes that are judged together from now on, one for each time."""
    propose, found = fleet.loader.propose, list[int]()

    def counted(commit: Any, intents: Any) -> Any:
        found.append(len(intents))
        return propose(commit, intents)

    fleet.loader.propose = counted  # type: ignore[method-assign]
    return found


def crash(fleet: CommitFleet, when: int) -> None:
    """The reconciler dies in its turn, before the branch is moved (0), behind that (1), or before one of its
    transactions; the next one loads what stands."""
    desired, store, me = fleet.committer._branch.desired, fleet.store, threading.get_ident()
    publish, write = desired.publish, store.write
    left = when - 1

    def publishing(*given: Any) -> None:
        if when:
            publish(*given)
        if when < 2:
            raise SystemExit

    def writing(*ops: Op) -> Future[list[int]]:
        nonlocal left
        if threading.get_ident() == me:
            left -= 1
            if not left and when > 1:
                raise SystemExit
        return write(*ops)

    desired.publish, store.write = publishing, writing  # type: ignore[method-assign]
    try:
        fleet.committer.serve()
    except SystemExit:
        pass
    finally:
        desired.publish, store.write = publish, write  # type: ignore[method-assign]
    fleet.committer = fleet.new_committer()
    fleet.load()


def messages(fleet: CommitFleet) -> list[str]:
    """Of what was committed through the API, oldest first."""
    repo = fleet.mirror.repository
    return [repo.commit(c).message for c in repo.first_parents(fleet.repo.commits[-1], fleet.repo.head) or ()]


def told(message: str) -> list[str]:
    """Who wrote what, as a message says it."""
    return [f"{each.user}: {each.name}" for each in written_by(message)]


def refusal(answer: Future[Any]) -> StatusError:
    with pytest.raises(StatusError) as refused:
        answer.result(60)
    return refused.value
