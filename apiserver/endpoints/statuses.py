"""GET /status of a workspace: what is wrong now, as `treeplane status` shows it. Called by kube.py.

In root that is all of the fleet and of this server's machine, elsewhere what is wrong in the workspace itself.
Authorization is the caller's: `get` on the path /status, in that workspace.
"""

from __future__ import annotations

import asyncio

import orjson

from apiserver.auth.givencertificates import GivenCertificates
from apiserver.complaints.complaint import Complaints
from apiserver.complaints.gather import gather, gather_in
from apiserver.complaints.machine import MachinePlace
from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import Exchange
from apiserver.endpoints.realms import RealmWorld
from apiserver.model.paths import ROOT
from apiserver.settings import ServerSettings


async def status(exchange: Exchange, world: RealmWorld, settings: ServerSettings) -> None:
    """Raises NoSuchPath where there is no workspace."""
    record = world.record
    if record is None or world.hidden:
        raise NoSuchPath

    def look() -> Complaints:
        with world.realm.store.view() as view:
            if record.path == ROOT:
                given = GivenCertificates.of(settings)
                return gather(view, MachinePlace(settings.data_dir, settings.keys_dir, given))
            return gather_in(view, record)

    found = await asyncio.to_thread(look)
    await exchange.answer(200, orjson.dumps(found.document()))
