"""What Kubernetes' subresources take and answer: facts for discovery, OpenAPI and the endpoints.

Which subresources a kind has is the kind's own business (ServedKind.subresources).
"""

from __future__ import annotations

from typing import NamedTuple

from apiserver.registry.served import ServedKind

CONNECTIONS = frozenset({"attach", "exec", "log", "portforward", "proxy"})
"""Those that lead to a node or to a running program."""

_USUAL = ("get", "patch", "update")
_ITSELF = ("", "", "")


class Subresource(NamedTuple):
    """`kind`: group, version and kind of what goes in and comes out. `schema`: the name of its definition, "" where it
    is the object itself."""

    verbs: tuple[str, ...] = _USUAL
    kind: tuple[str, str, str] = _ITSELF
    schema: str = ""


_PLAIN = Subresource()
_STREAM = ("create", "get")
_KNOWN = {
    "attach": Subresource(_STREAM, ("", "v1", "PodAttachOptions")),
    "binding": Subresource(("create",), ("", "v1", "Binding"), "io.k8s.api.core.v1.Binding"),
    "eviction": Subresource(("create",), ("policy", "v1", "Eviction"), "io.k8s.api.policy.v1.Eviction"),
    "exec": Subresource(_STREAM, ("", "v1", "PodExecOptions")),
    "finalize": Subresource(("update",)),
    "log": Subresource(("get",)),
    "portforward": Subresource(_STREAM, ("", "v1", "PodPortForwardOptions")),
    "proxy": Subresource(("create", "delete", "get", "patch", "update")),
    "scale": Subresource(_USUAL, ("autoscaling", "v1", "Scale"), "io.k8s.api.autoscaling.v1.Scale"),
    "token": Subresource(
        ("create",), ("authentication.k8s.io", "v1", "TokenRequest"), "io.k8s.api.authentication.v1.TokenRequest"
    ),
}


def of(kind: ServedKind, subresource: str) -> Subresource:
    """Of one that the kind has."""
    found = _KNOWN.get(subresource, _PLAIN)
    if subresource == "proxy":
        return found._replace(kind=(kind.group, kind.version, f"{kind.kind}ProxyOptions"))
    return found if found.kind != _ITSELF else found._replace(kind=(kind.group, kind.version, kind.kind))


SCHEMAS = {name: known.schema for name, known in _KNOWN.items() if known.schema}
"""By subresource: the definitions of what they take, where that is not the object."""
