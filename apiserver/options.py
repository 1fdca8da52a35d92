"""An option of the program is a field of a frozen dataclass, which says all there is to know of it.

The fields are in settings.py, of those that API workers do without in reconciler/commands. From a field follow the
option on the command line, how its text is read and what is refused (reconciler/commands/options), its line in
docs/settings.md (reconciler/commands/settingspage), and its way to the processes, as JSON: what this module leaves out
is how a field is used. Standard library only: every process reads it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

_OPTION = "option"
_Settings = TypeVar("_Settings")


@dataclass(frozen=True, slots=True)
class Option:
    """What a field does not say by its name, its type and its default."""

    help: str
    """What `--help` says. `{choices}` stands for the values that its form knows."""

    document: str = ""
    """What docs/settings.md says; "": the same."""

    name: str = ""
    """As it is typed; "": the field's name, with hyphens. In capitals: an argument, which has no name."""

    shown: str = ""
    """The default in words, as markdown, where the value would not say it."""

    unit: str = ""
    """Of a number: s, MiB."""

    metavar: str = ""
    """What stands for the value in `--help`; "": as its type has it."""

    form: str = ""
    """How a text is read that is more than any text; reconciler/commands/forms has them, by name."""

    choices: tuple[str, ...] = ()
    """The texts that it takes; (): any."""

    least: float | None = None
    """Of a number: anything less is refused."""

    whole: bool = False
    """Of a float: only whole numbers can be typed."""

    exists: bool = False
    """Of a path: it has to be a file that is there."""

    place: bool = False
    """Of a text: it may be the path of what is there, which counts from where it is said."""

    hidden: bool = False
    """Whether help and document leave it out: for tests."""

    otherwise: Callable[[Mapping[str, Any]], Any] | None = None
    """What it is if it is not given, of those before it by field: for who is asked on the command line. Whoever makes
    settings in code says it."""


def option(default: Any = MISSING, /, *, told: Option, secret: bool = False) -> Any:
    """A field that is an option. `default`: in code as on the command line; MISSING: see Option.otherwise. `secret`: it
    may hold a credential, and is left out where settings are printed."""
    return field(default=default, repr=not secret, metadata={_OPTION: told})


def options(group: type) -> list[tuple[Field[Any], Any, Option]]:
    """The fields of a dataclass that are options, with their types, in order."""
    hints = _hints(group)
    return [(each, hints[each.name], each.metadata[_OPTION]) for each in fields(group) if _OPTION in each.metadata]


def values(*groups: Any) -> dict[str, Any]:
    """What stands in the groups, by field: what settings are made of that have their fields."""
    return {each.name: getattr(group, each.name) for group in groups for each in fields(group)}


def to_json(settings: Any) -> str:
    """For a process that is started with these settings."""
    return json.dumps({name: str(v) if isinstance(v, Path) else v for name, v in asdict(settings).items()})


def from_json(kind: type[_Settings], text: str) -> _Settings:
    """What `to_json` was given. Raises ValueError on a name that is not a setting: parent and child are then of
    different versions."""
    found = json.loads(text)
    hints = _hints(kind)  # type: ignore[arg-type]
    known = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    unknown = set(found) - known
    if unknown:
        raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
    return kind(**{name: _read(value, hints[name]) for name, value in found.items()})


def part(kind: type[_Settings], found: Mapping[str, Any]) -> _Settings:
    """A group, of settings that have its fields among others: as they are, or as JSON has them."""
    hints = _hints(kind)  # type: ignore[arg-type]
    return kind(**{each.name: _read(found[each.name], hints[each.name]) for each in fields(kind)})  # type: ignore[arg-type]


@cache
def _hints(group: type[Any]) -> dict[str, Any]:
    """What the fields of a dataclass are; looking that up takes half a millisecond."""
    return get_type_hints(group)


def _read(value: Any, hint: Any) -> Any:
    if value is not None and Path in (hint, *get_args(hint)):
        return Path(value)
    return tuple(value) if isinstance(value, list) else value
