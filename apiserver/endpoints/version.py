"""GET /version: the Kubernetes version whose API is served, with Treeplane's own in the build part."""

from __future__ import annotations

import platform

import orjson

from apiserver.endpoints.exchange import Exchange

MAJOR, MINOR = "1", "36"

_GO_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names of processors where Go's, which clients know, are others."""

_BODY = orjson.dumps(
    {
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": f"v{MAJOR}.{MINOR}.0+treeplane",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{_GO_MACHINES.get(platform.machine(), platform.machine())}",
    }
)


async def server_version(exchange: Exchange) -> None:
    await exchange.answer(200, _BODY)
