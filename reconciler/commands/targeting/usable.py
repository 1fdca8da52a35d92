"""What of an administrator's kubeconfig a server can use to reach the cluster, and what it cannot.

His credentials are not among it. What the server would refuse is refused here already, by the server's own reader
(syncing/kubeconfig), and where it would refuse the address that is said, with what to do.
"""

from __future__ import annotations

import ipaddress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from apiserver.registry.outbound import NotAllowed, Outbound
from reconciler.commands.failure import Failure
from reconciler.syncing import kubeconfig as reading
from reconciler.syncing.errors import Unusable

Object = dict[str, Any]

_NAME = "target"
_TRIED = "x"


class UsableCluster(NamedTuple):
    """Of the kubeconfig that is written: `cluster`, with the address as the server is to use it."""

    cluster: Object

    def kubeconfig(self, token: str) -> bytes:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": self.cluster}],
            "users": [{"name": _NAME, "user": {"token": token}}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
            "current-context": _NAME,
        }
        return yaml.safe_dump(content, sort_keys=False).encode()

    @property
    def server(self) -> str:
        return str(self.cluster["server"])


def usable(config: Object, server: str = "") -> UsableCluster:
    """`config`: as `kubectl config view --raw --flatten --minify` has it. `server`: another address. Raises Failure."""
    try:
        [entry] = config["clusters"]
        cluster = dict(entry["cluster"])
        given = str(cluster["server"])
    except (KeyError, TypeError, ValueError):
        raise Failure("the kubeconfig's context names no cluster", "choose one with --context", 2) from None
    if server:
        # The certificate is for the name that stood there before.
        host = urlsplit(given).hostname or ""
        cluster = {**cluster, "server": server, "tls-server-name": cluster.get("tls-server-name") or host}
    found = UsableCluster(cluster)
    try:
        reading.read(found.kubeconfig(_TRIED))
    except Unusable as error:
        text = f"the server cannot use what the kubeconfig says of the cluster: {error}"
        raise Failure(text, "--server URL names another address; else mend the kubeconfig", 2) from None
    return found


def address_notes(found: UsableCluster, workspace: str) -> list[str]:
    """What there is to do before the server goes to this address."""
    parts = urlsplit(found.server)
    host, port = parts.hostname or "", parts.port or 443
    notes = []
    if _is_loopback(host):
        notes.append(
            f"{host} is the server's own machine, to the server: where it runs elsewhere, or in a container, name an "
            "address that it reaches: --server https://HOST:PORT"
        )
    try:
        Outbound().require(host, port)
    except NotAllowed:
        notes.append(
            f"{host} is not an address of the public internet: the server goes there once it is started with "
            f"`treeplane up --trust-targets {workspace}`"
        )
    except OSError:
        notes.append(f"{host} stands for no address here: the server has to find one")
    return notes


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
