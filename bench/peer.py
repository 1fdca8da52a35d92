"""What a real kube-apiserver with etcd does in the minutes of a measurement.

Machines differ from each other, and the same one from one minute to the next. Some expectations are of the machine on
which a kube-apiserver creates as many ConfigMaps a second as `PEER` says (docs/performance.md, first table), so they
are held against what it does here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

import uvloop
from api import CONNECTIONS, config_map, maps
from apiclient import Result, Server, load
from realclusters import binaries
from realclusters.cluster import RealCluster
from support.plane import Credentials

PEER = 1650
WRITES = 1000


def creates(folder: Path) -> Result:
    """It creates ConfigMaps from `CONNECTIONS` clients; the first ones are to warm it."""
    with RealCluster("peer", folder, binaries.find(), workloads=False, durable=True) as cluster:
        server = Server("peer", Credentials.read(cluster.kubeconfig_path), "", lambda: list(cluster.pids.values()))
        for name in ("w", "c"):
            asked = [
                server.request("POST", maps("default"), config_map("default", f"{name}{number}"))
                for number in range(WRITES)
            ]
            found = uvloop.run(load(server, asked, CONNECTIONS))
    return found


def share(rate: float, peers: Sequence[Result]) -> float:
    """Of a rate in what the peer did before and behind it."""
    return rate / mean(each.rate for each in peers)
