"""A workspace that offers widgets, one that takes them, and whether it has them: files and what is told of them."""

from __future__ import annotations

from support.loadedfleet import A, B, LoadedFleet
from support.widgets import binding, export, schema, widget

D = "workspaces/root/d"

APP_B = f"{B}/app.yaml"

TEXT = {f"{A}/v2.json": schema("v2", kind="string"), f"{A}/export.json": export("v2", allow="v1->v2")}
"""A new schema, which objects of the old one do not fit."""


def provide(directory: str = A) -> dict[str, str | None]:
    return {f"{directory}/schema.json": schema(), f"{directory}/export.json": export()}


def consume(directory: str = B, provider: str = "root:a") -> dict[str, str | None]:
    return {f"{directory}/binding.json": binding(provider), f"{directory}/w.json": widget(size=1)}


def ready(fleet: LoadedFleet, path: str, name: str = "widgets") -> tuple[str, str]:
    """Status and reason of a binding's condition Ready."""
    found = fleet.condition(fleet.get(path, "apibindings.apis.kcp.io", name, ""), "Ready")
    return found["status"], found["reason"]
