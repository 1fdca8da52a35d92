"""Settings as options on a command line: each field of their tree that is one (settings.py), and the tree again of what
was typed. Called by the command line; what a text may be is in forms.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field, fields
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import click

from apiserver.options import Option
from apiserver.options import options as options_of
from reconciler.commands.forms import FORMS, OptionForm

_Settings = TypeVar("_Settings")


def groups(tree: type) -> dict[str, type]:
    """The groups of a tree of settings, by its fields, in order."""
    hints = get_type_hints(tree)
    return {each.name: hints[each.name] for each in fields(tree)}


def name_of(field: Field[Any], told: Option) -> str:
    """How the option is typed; of an argument how it is called."""
    return told.name or f"--{field.name.replace('_', '-')}"


def options(tree: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator of a command that takes all options of the tree."""
    found = [_parameter(*each) for group in groups(tree).values() for each in options_of(group)]
    return lambda command: reduce(lambda done, parameter: parameter(done), reversed(found), command)


def nothing(tree: type) -> dict[str, Any]:
    """What was typed where nothing was, for `settings`."""
    return {field.name: None for group in groups(tree).values() for field, _, _ in options_of(group)}


def settings(tree: type[_Settings], given: dict[str, Any]) -> _Settings:
    """What was typed. `given`: the command's parameters, which are called as the fields."""
    given = dict(given)
    for group in groups(tree).values():
        for field, _, told in options_of(group):
            if given[field.name] is None:
                given[field.name] = told.otherwise(given) if told.otherwise is not None else field.default
    return tree(
        **{
            name: group(**{field.name: given[field.name] for field, _, _ in options_of(group)})
            for name, group in groups(tree).items()
        }
    )


def _parameter(field: Field[Any], hint: Any, told: Option) -> Any:
    """The decorator that adds one."""
    name, form = name_of(field, told), FORMS[told.form]
    # What is no text or number would be taken for one that was typed: it is put in when all is read (see settings).
    plain = isinstance(field.default, str | int | float) and told.otherwise is None
    default = field.default if plain else None
    if not name.startswith("-"):
        return click.argument(field.name, required=False)
    more: dict[str, Any] = {"hidden": told.hidden, "help": _help(told, form), "metavar": told.metavar or None}
    if hint is bool:
        flag: dict[str, Any] = {"is_flag": True} if not default else {"flag_value": False, "default": True}
        return click.option(name, field.name, **flag, **more)
    more |= {"type": _type(hint, told), "callback": _callback(hint, form)}
    if get_origin(hint) is tuple and not form.joined:
        return click.option(name, field.name, multiple=True, **more)
    return click.option(name, field.name, default=default, show_default=bool(default) and not told.shown, **more)


def _help(told: Option, form: OptionForm) -> str:
    said = told.help.replace("{choices}", ", ".join(form.choices))
    return f"{said}  [default: {told.shown.replace('`', '')}]" if told.shown else said


def _type(hint: Any, told: Option) -> Any:
    if Path in (hint, *get_args(hint)):
        return click.Path(path_type=Path, exists=told.exists, dir_okay=not told.exists)
    if told.choices:
        return click.Choice(told.choices)
    if hint is int or told.whole:
        return click.IntRange(int(told.least)) if told.least is not None else int
    if hint is float:
        return click.FloatRange(told.least) if told.least is not None else float
    return str


def _callback(hint: Any, form: OptionForm) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Reads what was typed, and lets defaults be."""

    def read(_context: click.Context, _option: click.Parameter, found: Any) -> Any:
        if isinstance(found, Path):
            return found.absolute()
        try:
            if isinstance(found, str):
                return form.read(found)
            return tuple(map(form.read, found)) if get_origin(hint) is tuple and found else found
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    return read
