"""A kopf operator on a kind of its own: a finalizer, a timer, status and events. Run by e2e/test_clients.py with
`kopf run`; what it did shows in the objects."""

from __future__ import annotations

from typing import Any

import kopf


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.persistence.finalizer = "kopf.example/finalizer"
    settings.posting.level = 20


@kopf.on.create("kopf.example", "v1", "robots")
def created(spec: Any, patch: Any, **_: Any) -> dict[str, Any]:
    patch.metadata.labels["seen"] = "yes"
    return {"task": spec["task"]}


@kopf.on.update("kopf.example", "v1", "robots", field="spec.task")
def updated(old: Any, new: Any, **_: Any) -> dict[str, Any]:
    return {"from": old, "to": new}


@kopf.on.delete("kopf.example", "v1", "robots")
def deleted(name: str, body: Any, **_: Any) -> None:
    kopf.info(body, reason="Scrapped", message=f"{name} is no more")


@kopf.timer("kopf.example", "v1", "robots", interval=0.2)
def beat(status: Any, patch: Any, **_: Any) -> None:
    patch.status["beats"] = (status.get("beats") or 0) + 1
