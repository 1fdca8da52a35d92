"""Logs, exec, attach, port-forward and proxies: what a server says that has no nodes to turn to.

Where Pods are a cluster's own it says what a kube-apiserver says before it turns to a node: about Pods that do not
exist or are placed nowhere, containers that are none, Services without endpoints. Where that would now open a
connection the answer is a 501 that names it. Pods that are bound run on sync targets, so they get that answer at once.
Nothing here opens any connection.
"""

from __future__ import annotations

import ipaddress
from typing import Any

import orjson

from apiserver.endpoints import bulk
from apiserver.endpoints.asking import Asking
from apiserver.model.errors import (
    Cause,
    StatusError,
    bad_request,
    invalid,
    method_not_allowed,
    not_found,
    unavailable,
)
from apiserver.model.keys import Key
from apiserver.registry import subresources
from apiserver.schema import messages

Object = dict[str, Any]

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_LEAST = {"tailLines": (0, "must be greater than or equal to 0"), "limitBytes": (1, "must be greater than 0"),
          "sinceSeconds": (1, "must be greater than 0")}  # fmt: skip
_SCHEMES = ("", "http", "https")
_COMMANDS = frozenset({"attach", "cp", "exec", "logs", "port-forward"})
"""kubectl's, as it says them in a header."""


async def connect(asking: Asking, verb: str) -> None:
    """Raises StatusError always but for the logs of a Pod that is not placed, which are empty."""
    subresource = asking.place.subresource
    if verb not in subresources.of(asking.kind, subresource).verbs or not asking.place.name:
        raise method_not_allowed()
    if not asking.kind.of_cluster:
        _read(asking, asking.place.name.rpartition(":")[0] or asking.place.name)
        raise _elsewhere(asking, f"{asking.kind.resource}/{subresource}")
    if subresource == "proxy":
        raise _proxied(asking)
    pod = _read(asking, asking.place.name)
    if subresource == "log":
        _check_log(asking)
    if subresource != "portforward":
        _check_container(pod, asking.exchange.parameter("container"))
    node = pod["spec"].get("nodeName")
    if not node and subresource == "log":
        asking.exchange.warnings.append("pods/log is not supported: this server has no connection to any node")
        await asking.exchange.answer(204, b"")
        return
    if not node:
        raise bad_request(f"pod {asking.place.name} does not have a host assigned")
    raise _not_reached(f"pods/{subresource}", f'node "{node}" of pod "{asking.place.name}"')


def _read(asking: Asking, name: str) -> Object:
    record = asking.world.realm.store.get(asking.key()._replace(name=name))
    if record is None:
        raise not_found(asking.kind.resource, asking.kind.group, name)
    found: Object = orjson.loads(record.value)
    return found


def _not_reached(what: str, where: str) -> StatusError:
    return StatusError(501, "NotImplemented", f"{what} is not supported: this server has no connection to {where}")


def _elsewhere(asking: Asking, what: str) -> StatusError:
    where = f"what {asking.world.path} binds runs on sync targets, to whose programs this server has no connection"
    hint = "`kubectl get placements -o wide` says on which"
    return StatusError(501, "NotImplemented", f"{what} is not supported: {where}; {hint}")


def no_pods(path: str) -> StatusError:
    """404 for Pods of a workspace that serves none: logs, exec and their like are looked for here."""
    why = f"pods are not served in workspace {path}: to run some, bind the export kubernetes of root:compute"
    return StatusError(404, "NotFound", why, {"kind": "pods"})


def seek(asking: Asking) -> None:
    """Of a list or watch of Pods: raises StatusError 501 where a program looks for one to connect to and there is none.
    `kubectl exec deployment/web` would wait for a minute, and could not connect to what might come."""
    command = asking.exchange.header(b"kubectl-command").removeprefix("kubectl ")
    if command not in _COMMANDS or asking.kind.qualified != "pods" or asking.world.cluster is None:
        return
    if bulk.matching(asking):
        return
    what = f"kubectl {command}"
    if not asking.kind.of_cluster:
        raise _elsewhere(asking, what)
    raise _not_reached(what, "any node, and no Pod matches")


def _check_container(pod: Object, name: str) -> None:
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names = [c["name"] for field in _CONTAINERS for c in spec.get(field) or ()]
    if name and name not in names:
        raise bad_request(f"container {name} is not valid for pod {pod_name}")
    if not name and len(spec.get("containers") or ()) > 1:
        listed = " ".join(names)
        raise bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{listed}]")


def _check_log(asking: Asking) -> None:
    causes: list[Cause] = []
    for name, (least, text) in _LEAST.items():
        value = asking.exchange.number(name)
        if value is not None and value < least:
            causes.append(messages.invalid(name, value, text))
    if asking.exchange.parameter("sinceSeconds") and asking.exchange.parameter("sinceTime"):
        causes.append(messages.forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    if causes:
        raise invalid("PodLogOptions", "", asking.place.name, causes)


def _proxied(asking: Asking) -> StatusError:
    """`<name>`, `<name>:<port>` or `<scheme>:<name>:<port>`."""
    asked, singular = asking.place.name, asking.kind.singular
    parts = asked.split(":")
    scheme, name, port = {1: ["", asked, ""], 2: ["", *parts], 3: parts}.get(len(parts), ["?", "", ""])
    if scheme not in _SCHEMES or not name:
        return bad_request(f'invalid {singular} request "{asked}"')
    obj = _read(asking, name)
    if asking.kind.resource == "services":
        return _service(asking, obj, name, port)
    status = obj.get("status") or {}
    addresses = [status.get("podIP"), *(a.get("address") for a in status.get("addresses") or ())]
    if not any(_routable(str(address)) for address in addresses):
        return bad_request("address not allowed")
    return _not_reached(f"{asking.kind.resource}/proxy", f'{singular} "{name}"')


def _service(asking: Asking, service: Object, name: str, port: str) -> StatusError:
    ports = (service.get("spec") or {}).get("ports") or ()
    if port.isdecimal() and not any(p.get("port") == int(port) for p in ports):
        return _unavailable(f'no service port {port} found for service "{name}"')
    at = asking.key()
    endpoints = asking.world.realm.store.get(Key("endpoints", at.cluster, at.namespace, name))
    subsets = (orjson.loads(endpoints.value).get("subsets") if endpoints else None) or ()
    if not any(subset.get("addresses") for subset in subsets):
        return _unavailable(f'no endpoints available for service "{name}"')
    return _not_reached("services/proxy", f'the endpoints of service "{name}"')


def _unavailable(message: str) -> StatusError:
    error = unavailable(message)
    error.retry_after = None
    return error


def _routable(address: str) -> bool:
    try:
        at = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (at.is_unspecified or at.is_loopback or at.is_multicast or at.is_link_local)
