"""POST /reconcile of a workspace: have its repository looked at now. In root the fleet's, elsewhere the one that the
workspace has its content from. GET tells what was found by the last look that was asked for. Called by kube.py.

Authorization is the caller's: `post` or `get` on the path /reconcile, in that workspace. A ring asks for a look and
says nothing else, so whoever rings decides nothing but when; how often there is a look at most is for who listens.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict
from pathlib import Path

import orjson

from apiserver import bell
from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import Exchange
from apiserver.endpoints.realms import RealmWorld
from apiserver.model.errors import StatusError, method_not_allowed
from apiserver.model.paths import ROOT
from apiserver.registry import looks, tree
from apiserver.registry.holding import check_holder
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import View


async def reconcile(exchange: Exchange, world: RealmWorld, data_dir: Path) -> None:
    """Raises NoSuchPath where there is no workspace, StatusError where it has no repository to look at."""
    record, store = world.record, world.realm.store
    if record is None or world.hidden:
        raise NoSuchPath
    if exchange.method not in ("GET", "POST"):
        raise method_not_allowed()
    if record.path != ROOT and not (record.source or record.follows):
        raise _no_source(record)
    if exchange.method == "GET":
        await exchange.answer(200, orjson.dumps(_found(store, record)))
        return
    if record.path != ROOT:
        check_holder(store)  # who only shows what another server records looks at nobody's source
    asked = time.time()
    about = b"" if record.path == ROOT else record.path.encode()
    await asyncio.to_thread(bell.ring, data_dir, bell.LOOK, about)
    await exchange.answer(202, orjson.dumps({"asked": asked}))


def _found(store: View, record: WorkspaceRecord) -> dict[str, object]:
    """`looked`: see looks.Looked, null where nobody asked yet. `arriving`: commits that are on their way into the
    store. `held`: of a workspace how many errors hold it, of the fleet how many workspaces are held."""
    is_root = record.path == ROOT
    found, fleet = looks.looked(store, "" if is_root else record.cluster), tree.fleet(store)
    return {
        "looked": asdict(found) if found is not None else None,
        "arriving": [str(commit) for commit in fleet.arriving],
        "held": tree.count_held(store) if is_root else len(record.errors),
    }


def _no_source(record: WorkspaceRecord) -> StatusError:
    what = f"{record.path} has its content from the fleet's repository: ask for that, `treeplane reconcile-now`"
    return StatusError(400, "BadRequest", what)
