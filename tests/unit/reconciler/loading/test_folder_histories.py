"""A fleet in a folder of a repository is the fleet that it would be at the top: over generated histories, with commits
in between that are nothing to it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo
from support.happenings import PUSHES, Happening, History
from support.loadedfleet import LoadedFleet
from support.recoveries import assert_same

FOLDER = "fleets/prod"
HAPPENS = (*PUSHES, "publish", "restart", "allow", "back", "relocate", "finalizer", "let go")
NOISE = {
    "services/web/main.go": "package main\n",
    "workspaces/root/stray.yaml": "a: [",
    "treeplane.yaml": "kind: Wrong\n",
}
"""Of other people, some of it where a fleet at the top would have it."""


def happened(fleet: LoadedFleet, history: History) -> Happening:
    happening = Happening(fleet)
    happening.begin()
    for number, (name, value, load) in enumerate(history):
        if fleet.repo.folder:
            fleet.repo.elsewhere({f"{path}{number}" if number else path: text for path, text in NOISE.items()})
        happening.happen(name, value, load=load)
    fleet.load()
    return happening


def seen(fleet: LoadedFleet) -> dict[str, Any]:
    """What there is, without what follows from the ids of commits, and with paths as from the fleet's folder."""
    out: dict[str, Any] = {}
    for record in fleet.records():
        out[record.path] = [_told(error) for error in record.errors], record.served
    for path, resource, namespace, name, value in _objects(fleet):
        metadata = value["metadata"]
        labels = {k: v for k, v in (metadata.get("labels") or {}).items() if not k.startswith("internal.")}
        file = (metadata.get("annotations") or {}).get("treeplane.dev/source-path", "")
        out[f"{path} {resource} {namespace}/{name}"] = (
            _told(file), value.get("data") if resource != "secrets" else None, sorted(labels),
            metadata.get("generation"), "deletionTimestamp" in metadata,
        )  # fmt: skip
    return out


def _objects(fleet: LoadedFleet) -> Iterator[tuple[str, str, str, str, Any]]:
    for record in fleet.records():
        for kind in fleet.kinds(record.path) if record.served else ():
            if not kind.storage or kind.storage.startswith("~"):
                continue
            for found in fleet.store.scan(kind.storage, record.cluster)[0]:
                value = orjson.loads(found.value)
                if "metadata" in value and found.key.namespace != "kube-system":
                    yield record.path, kind.storage.partition(":")[0], found.key.namespace, found.key.name, value


def _told(text: str) -> str:
    return re.sub(r"\b[0-9a-f]{10,64}\b", "*", text.replace(f"{FOLDER}/", ""))


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(history=st.lists(st.tuples(st.sampled_from(HAPPENS), st.integers(0, 23), st.booleans()), min_size=1, max_size=8))
@example(history=[("remove", 1, True), ("publish", 0, True), ("put back", 1, False), ("relocate", 0, True)])
@example(history=[("move", 0, True), ("allow", 0, False), ("break", 1, True), ("mend", 1, True)])
def test_in_a_folder_it_is_what_it_is_at_the_top(tmp_path_factory: pytest.TempPathFactory, history: History) -> None:
    place = tmp_path_factory.mktemp("folders")
    with ExitStack() as opened:

        def fleet(name: str, repo: FleetRepo, **more: Any) -> LoadedFleet:
            return opened.enter_context(closing(LoadedFleet(place / name, repo, **more)))

        top = fleet("top", FleetRepo(place / "top.git"))
        inside = fleet("inside", FleetRepo(place / "inside.git", folder=FOLDER))
        happened(top, history)
        happening = happened(inside, history)
        assert seen(inside) == seen(top)
        inside.publish()
        if not happening.left:
            recovered = fleet("recovered", inside.repo, keys=inside.keys)
            recovered.load(recovered.recorded())
            assert_same(recovered, inside)
            assert recovered.writer().flush() is None
