"""A provider's controller, with kopf: gives every Cowboy of every consumer its result.

    EXPORT=root:wildwest/cowboys kopf run -A with_kopf.py

kopf lists and watches the provider's view of the export, all consumers at once, so it is told that as its server
(`login`). In that view objects of several workspaces may have one name, and kopf by itself writes to what a name says.
So the handler is an event's (`kopf.on.event`), for which kopf keeps no notes in the object, and what it writes goes to
the view of the one workspace that the object is in.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import aiohttp
import kopf

GROUP, VERSION, PLURAL = "wildwest.dev", "v1alpha1", "cowboys"
MERGE = {"Content-Type": "application/merge-patch+json"}


def view(settings: kopf.OperatorSettings) -> kopf.ConnectionInfo:
    """As the kubeconfig says, but of the provider's view of the export."""
    found = kopf.login_with_kubeconfig(settings=settings)
    if found is None:
        raise kopf.LoginError("there is no kubeconfig: set KUBECONFIG")
    server = found.server.partition("/clusters/")[0]
    return dataclasses.replace(found, server=f"{server}/services/apiexport/{os.environ['EXPORT']}/clusters/*")


@kopf.on.login()
def login(settings: kopf.OperatorSettings, **_: Any) -> kopf.ConnectionInfo:
    return view(settings)


@kopf.on.startup()
async def begin(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    memo.view = view(settings)
    connector = aiohttp.TCPConnector(limit=8, ssl=memo.view.as_ssl_context())
    memo.session = aiohttp.ClientSession(connector=connector, headers=memo.view.as_http_headers())


@kopf.on.cleanup()
async def end(memo: kopf.Memo, **_: Any) -> None:
    await memo.session.close()


@kopf.on.event(GROUP, VERSION, PLURAL)
async def reconcile(type: str | None, spec: Any, status: Any, meta: Any, memo: kopf.Memo, **_: Any) -> None:
    wanted = {"result": f"Yeehaw, {spec.get('intent', 'partner')}"}
    if type == "DELETED" or dict(status) == wanted:
        return
    one = memo.view.server.removesuffix("*") + meta["annotations"]["kcp.io/cluster"]
    url = f"{one}/apis/{GROUP}/{VERSION}/namespaces/{meta['namespace']}/{PLURAL}/{meta['name']}/status"
    async with memo.session.patch(url, json={"status": wanted}, headers=MERGE) as answer:
        if answer.status not in (200, 403, 404):  # it went, or its workspace takes the API no more
            raise RuntimeError(f"{url}: {answer.status} {await answer.text()}")
