"""/healthz, /livez and /readyz inside a world: text, `?verbose` with a line for each check."""

from __future__ import annotations

from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import TEXT, Exchange
from apiserver.endpoints.paths import Place
from apiserver.endpoints.realms import Realms, fleet

_CHECKS = ("ping", "log", "etcd")
"""The names that kube-apiserver gives them: clients ask for single ones."""


async def health(exchange: Exchange, place: Place, realms: Realms) -> None:
    """500 while the fleet is not loaded (readyz only). Raises NoSuchPath for a check that does not exist."""
    checks = [*_CHECKS, *(["informer-sync"] if place.resource == "readyz" else [])]
    if place.name and place.name not in checks:
        raise NoSuchPath
    loaded = place.resource != "readyz" or fleet(realms.main).loaded
    failing = set() if loaded else {"informer-sync"}
    shown = [place.name] if place.name else checks
    good = not failing.intersection(shown)
    verdict = f"{place.resource} check {'passed' if good else 'failed'}\n"
    if good and "verbose" not in exchange.query:
        await exchange.answer(200, b"ok", TEXT)
        return
    excluded = set(exchange.query.get("exclude", ()))
    lines = "".join(f"[{'-' if c in failing else '+'}]{c} {'failed: not loaded' if c in failing else 'ok'}\n"
                    for c in shown if c not in excluded)  # fmt: skip
    await exchange.answer(200 if good else 500, (lines + verdict).encode(), TEXT)
