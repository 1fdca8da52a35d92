"""/healthz, /livez and /readyz inside a world: text, `?verbose` with a line for each check."""

from __future__ import annotations

from uuid import NAMESPACE_URL, uuid5

from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import TEXT, Exchange, Headers
from apiserver.endpoints.paths import RequestPath
from apiserver.endpoints.realms import Realms, fleet
from apiserver.registry import tree

_CHECKS = ("ping", "log", "etcd")
"""The names that kube-apiserver gives them: clients ask for single ones."""

_HOOKS = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "start-cluster-authentication-info-controller",
    "storage-readiness",
    "start-service-ip-repair-controllers",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "bootstrap-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "kube-apiserver-autoregistration",
    "apiservice-openapi-controller",
)
_WHOLE = (*(f"poststarthook/{hook}" for hook in _HOOKS), "autoregister-completion")
"""What a cluster with all of Kubernetes' kinds has besides; here it is done once the workspace is served."""

_FLOW: Headers = [
    (b"x-kubernetes-pf-flowschema-uid", str(uuid5(NAMESPACE_URL, "treeplane:flowschema:probes")).encode()),
    (b"x-kubernetes-pf-prioritylevel-uid", str(uuid5(NAMESPACE_URL, "treeplane:prioritylevel:exempt")).encode()),
]
"""What a kube-apiserver that bounds its clients itself, as is done here (inflight.py), sends with every answer. Clients
look for it at /livez/ping, and without it keep to bounds of their own: Flux then gives up on what takes long, with an
error of its rate limiter instead of what it waits for."""


_READY = ("informer-sync", "fleet")


async def health(
    exchange: Exchange,
    place: RequestPath,
    realms: Realms,
    *,
    whole: bool = False,
    texts: bool = False,
    brief: bool = False,
) -> None:
    """500 while the fleet is not loaded (readyz only). Raises NoSuchPath for a check that does not exist. `whole`: of a
    cluster with all of Kubernetes' kinds. `texts`: the asker may read what is wrong with the fleet; `brief`: he has no
    right here, as probes have none, and is told whether all is well.

    Trouble of the fleet is a line of readyz and fails it only where that line is asked for: reads go on."""
    checks = [*_CHECKS, *(_READY if place.resource == "readyz" else []), *(_WHOLE if whole else ())]
    if place.name and place.name not in checks:
        raise NoSuchPath
    loaded = place.resource != "readyz" or fleet(realms.main).loaded
    failing = {} if loaded else {"informer-sync": "failed: not loaded"}
    if troubles := tree.troubles(realms.main.store) if "fleet" in checks else {}:
        failing["fleet"] = trouble(troubles, texts=texts)
    shown = [place.name] if place.name else checks
    good = not failing.keys() & set(shown) - ({"fleet"} if not place.name else set())
    verdict = f"{place.resource} check {'passed' if good else 'failed'}\n"
    if good and (brief or "verbose" not in exchange.query):
        await exchange.answer(200, b"ok", TEXT, _FLOW)
        return
    if brief:
        await exchange.answer(500, verdict.encode(), TEXT, _FLOW)
        return
    excluded = set(exchange.query.get("exclude", ()))
    lines = "".join(f"[{'-' if c in failing else '+'}]{c} {failing.get(c, 'ok')}\n"
                    for c in shown if c not in excluded)  # fmt: skip
    await exchange.answer(200 if good else 500, (lines + verdict).encode(), TEXT, _FLOW)


def trouble(found: dict[str, str], *, texts: bool) -> str:
    """One line: what is wrong with the fleet, to outsiders by its kind alone."""
    told = [f"{kind}: {' '.join(text.split())}" if texts else kind for kind, text in sorted(found.items())]
    return "; ".join(told)
