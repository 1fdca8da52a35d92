"""The tables of docs/metrics.md, made of the definitions: `python -m reconciler.commands.metricspage docs/metrics.md`
writes them anew (`make settings`), and a test compares. What stands before and after them is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc
from types import ModuleType

from apiserver.metrics import clusters, fleet, machine, queues, requests, store
from apiserver.metrics.definition import Metric
from reconciler.commands import madepage

_SUBJECTS: tuple[tuple[str, ModuleType], ...] = (
    ("Requests", requests),
    ("Commits, the repository, the status branch", fleet),
    ("Sync targets", clusters),
    ("Controllers", queues),
    ("Store", store),
    ("Machine", machine),
)


def page(text: str) -> str:
    """`text` with the tables between its marks."""
    return madepage.between(text, "definitions", (_table(title, module) for title, module in _SUBJECTS))


def metrics() -> dict[str, Metric]:
    """All that a server exports, by name."""
    return {each.name: each for _, module in _SUBJECTS for each in _of(module)}


def _of(module: ModuleType) -> Iterator[Metric]:
    return (each for each in vars(module).values() if isinstance(each, Metric))


def _table(title: str, module: ModuleType) -> str:
    told = " ".join((getdoc(module) or "").split())
    rows = (
        (f"`{each.name}`", each.kind, ", ".join(f"`{label}`" for label in each.labels), each.help)
        for each in _of(module)
    )
    table = madepage.table(("metric", "kind", "labels", "what it says"), rows)
    return "\n".join([f"## {title}", "", _reader(told), "", *table, "", ""])


def _reader(told: str) -> str:
    """A module's docstring without who in the program counts."""
    return told.partition(" Counted by ")[0].partition(" Read by ")[0]


if __name__ == "__main__":
    madepage.write(page)
