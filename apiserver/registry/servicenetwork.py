"""The addresses and ports of Services: the ranges that a cluster starts with, and arithmetic on them.

Nothing routes them: they are what kube-apiserver would have allocated, so that clients find the fields they wait for.
Read by allocation.py and by whoever renders the objects that a cluster starts with.
"""

from __future__ import annotations

import ipaddress

CIDR = "10.0.0.0/16"
"""The range of the ServiceCIDR `kubernetes`."""
KUBERNETES_ADDRESS = "10.0.0.1"
"""Of the Service `kubernetes`, the first of the range."""
API_ADDRESS, API_PORT = "192.0.2.1", 6443
"""What stands for the server behind that Service: an address of the range that is kept free for examples."""
FIRST_NODE_PORT, LAST_NODE_PORT = 30000, 32767
NODE_PORTS = f"{FIRST_NODE_PORT}-{LAST_NODE_PORT}"

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def family(address: str) -> str:
    """`IPv4` or `IPv6`; raises ValueError for what is no address."""
    return f"IPv{ipaddress.ip_address(address).version}"


def network(cidr: str) -> Network | None:
    try:
        return ipaddress.ip_network(cidr)
    except ValueError:
        return None


def usable(found: Network) -> range:
    """Offsets of the addresses that Services may have: neither the first of the range nor, in IPv4, its last."""
    return range(1, min(found.num_addresses - (found.version == 4), 2**32))
