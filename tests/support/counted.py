"""What this process has counted, for tests: all of it since the process began, so a test compares before and after."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from apiserver.metrics import library, pending

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(text: str) -> Series:
    """By name and labels."""
    found = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return {(sample.name, frozenset(sample.labels.items())): sample.value for sample in found}


def number(name: str, /, **labels: str) -> float:
    """The sum of all series of that name that have these labels."""
    pending.flush()
    found = series(library.text(()).decode())
    return total(found, name, **labels)


def total(found: Series, name: str, /, **labels: str) -> float:
    wanted = labels.items()
    return sum(value for (each, has), value in found.items() if each == name and wanted <= dict(has).items())
