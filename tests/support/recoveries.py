"""A fleet that is lost and comes back from its repository, held against the one that went on running."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
from support.loadedfleet import LoadedFleet

from apiserver.registry import tree

Another = Callable[..., LoadedFleet]
"""Opens a LoadedFleet with an empty store beside another one, over the same repository."""

SLICES = "apiexportendpointslices.apis.kcp.io"


def recover(
    fleet: LoadedFleet, another: Another, name: str = "recovered", *, identities: bool = True, share: bool = False
) -> LoadedFleet:
    """A new server over the same repository. `share`: with the same directory of keys, new ones included."""
    keys = fleet.keys if share else Path(fleet.directory.parent / f"{name}-keys")
    if identities and not share and fleet.keys.exists():
        shutil.copytree(fleet.keys, keys)
    new = another(fleet, name, keys=keys)
    recorded = new.recorded()
    assert recorded is not None
    assert recorded.facts().id == fleet.fleet().fleet
    new.load(recorded)
    return new


def assert_same(new: LoadedFleet, old: LoadedFleet, *, at: bool = True) -> None:
    """The same objects, and the same of every workspace. `at` False: of two commits that hold the same of a workspace
    either may be named as what is served."""
    known = _keys(new) >= _keys(old)
    mine, theirs = text(new, keys=known), text(old, keys=known)
    assert mine == theirs, "\n".join(difflib.unified_diff(theirs, mine, "before", "recovered", n=0, lineterm=""))
    for record in old.records():
        other = new.record(record.path)
        for name in ("cluster", "parent", "type", "served", "commit", "origin", "origin_time", "directory", "errors"):
            assert getattr(other, name) == getattr(record, name), f"{name} of {record.path}"
        said, before = tree.summary(new.store, other.path), tree.summary(old.store, record.path)
        for each in (said, before):
            each.pop("step", None)  # of one that is over it says nothing any more
        if not at and said.get("served") and before.get("served"):
            said["served"] = before["served"]
        assert said == before, record.path
    assert new.fleet().fleet == old.fleet().fleet
    assert new.held() == old.held()
    here, there = ({p: e for p, e in fleet.listed().items() if p not in new.held()} for fleet in (new, old))
    assert here == there


def _keys(fleet: LoadedFleet) -> set[str]:
    return {file.name for file in (fleet.keys / "identities").glob("*")}


def text(fleet: LoadedFleet, *, keys: bool = True) -> list[str]:
    """`keys`: with the Secrets that hold identity keys, which a server without its keys cannot have."""
    lines = []
    for key, value in fleet.everything().items():
        if not keys and (key.resource, key.namespace) == ("secrets", "kcp-system"):
            continue
        obj = orjson.loads(value)
        if key.resource == SLICES:
            # What a controller says when it gets to it, before or after what is compared, with the time that it is.
            # That a recovery has what was recorded of it is told in controllers/test_endpointslices.py.
            obj.pop("status", None)
        if b'"treeplane.dev/origin":"removed"' in value and (obj.get("status") or {}).get("conditions"):
            # All of one that git declares no more is a residue, which has them in an order that depends on nothing.
            obj["status"]["conditions"].sort(key=lambda condition: condition["type"])
        dumped = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2).decode()
        lines += [f"{'/'.join(key)}: {line}" for line in dumped.splitlines()]
    return lines


def assert_recovers(
    fleet: LoadedFleet, another: Another, name: str = "recovered", *, identities: bool = True, share: bool = False
) -> LoadedFleet:
    """Records all, loses all, and has it again; nothing is left to be recorded then."""
    head = fleet.publish()
    new = recover(fleet, another, name, identities=identities, share=share)
    assert_same(new, fleet)
    assert new.writer().flush() is None
    assert new.mirror.refresh().status == head
    return new
