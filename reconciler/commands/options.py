"""Settings as options on a command line: each field of their tree that is one (settings.py), and the tree again of what
was typed, or of what a file and the environment say instead (configuration.py). Called by the command line; what a text
may be is in forms.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import Field, fields
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import click
from click.core import ParameterSource

from apiserver.options import Option
from apiserver.options import options as options_of
from reconciler.commands.configuration import CONFIG, PREFIX, Configuration, KnownOption, check_names
from reconciler.commands.forms import FORMS, OptionForm
from reconciler.commands.kcpsettings import KcpSettings
from reconciler.commands.settings import UpSettings

_Settings = TypeVar("_Settings")

TREES: tuple[type, ...] = (UpSettings, KcpSettings)
_SAID = "treeplane.configuration"


def groups(tree: type) -> dict[str, type]:
    """The groups of a tree of settings, by its fields, in order."""
    hints = get_type_hints(tree)
    return {each.name: hints[each.name] for each in fields(tree)}


def name_of(field: Field[Any], told: Option) -> str:
    """How the option is typed; of an argument how it is called."""
    return KnownOption(field, None, told).typed


def known(tree: type) -> list[KnownOption]:
    """All options of a tree."""
    return [KnownOption(*each) for group in groups(tree).values() for each in options_of(group)]


def options(tree: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator of a command that takes all options of the tree."""
    return _with([*map(_parameter, known(tree)), _config(tree)])


def group_options(group: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator of a command that takes the options of one group, without a file; a variable says one, too."""
    found = (KnownOption(*each) for each in options_of(group))
    return _with([_parameter(each, envvar=each.variable) for each in found])


def _with(parameters: list[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return lambda command: reduce(lambda done, parameter: parameter(done), reversed(parameters), command)


def nothing(tree: type) -> dict[str, Any]:
    """What was typed where nothing was, for `settings`."""
    return {each.field.name: None for each in known(tree)}


def settings(tree: type[_Settings], given: dict[str, Any]) -> _Settings:
    """What was typed. `given`: the command's parameters, which are called as the fields."""
    given = dict(given)
    for field, _, told in known(tree):
        if given[field.name] is None:
            given[field.name] = told.otherwise(given) if told.otherwise is not None else field.default
    return tree(
        **{
            name: group(**{field.name: given[field.name] for field, _, _ in options_of(group)})
            for name, group in groups(tree).items()
        }
    )


class _Elsewhere(click.Parameter):
    """A parameter whose value may stand in a file or in the environment; an error says where."""

    secret = False

    def consume_value(self, ctx: click.Context, opts: Any) -> tuple[Any, ParameterSource]:
        value, source = super().consume_value(ctx, opts)
        said = self._said(ctx)
        if source is ParameterSource.COMMANDLINE or said is None:
            return value, source
        return said.value, ParameterSource.ENVIRONMENT

    def process_value(self, ctx: click.Context, value: Any) -> Any:
        try:
            return super().process_value(ctx, value)
        except click.BadParameter as error:
            said, text = self._said(ctx), error.message
            if self.secret:
                text = text.replace(f"{value!r}", "it").replace(f"{value}", "it")
            if said is not None and ctx.get_parameter_source(self.name or "") is not ParameterSource.COMMANDLINE:
                raise click.UsageError(f"{said.place}: {text}", ctx) from None
            raise click.BadParameter(text, ctx, self) from None

    def _said(self, ctx: click.Context) -> Any:
        configuration = ctx.meta.get(_SAID)
        return configuration.said(self.name) if configuration is not None else None


class SettingOption(_Elsewhere, click.Option):
    """An option of a tree of settings."""


class SecretOption(SettingOption):
    """One that may hold a credential."""

    secret = True


class SettingArgument(_Elsewhere, click.Argument):
    """An argument of a tree of settings, which may hold a credential."""

    secret = True


def _config(tree: type) -> Any:
    """The decorator that adds `--config`, which is read before all others are asked for."""

    def read(ctx: click.Context, _option: click.Parameter, file: str) -> None:
        if ctx.resilient_parsing:
            return
        check_names(os.environ, [each for other in TREES for each in known(other)])
        kind: str = tree.KIND  # type: ignore[attr-defined]
        ctx.meta[_SAID] = Configuration.read(kind, known(tree), file or os.environ.get(CONFIG, ""), os.environ)
        # Processes that are started get what concerns them; a credential that stands here is none of a worker's.
        for each in known(tree):
            os.environ.pop(each.variable, None)

    return click.option(
        "--config",
        metavar="FILE",
        default="",
        is_eager=True,
        expose_value=False,
        callback=read,
        help=f"A file that says what is not typed. ${CONFIG}, ${PREFIX}… do so, too: docs/settings.md.",
    )


def _parameter(option: KnownOption, **extra: Any) -> Any:
    """The decorator that adds one. `extra`: what click is told besides."""
    field, hint, told = option
    name, form = option.typed, FORMS[told.form]
    # What is no text or number would be taken for one that was typed: it is put in when all is read (see settings).
    plain = isinstance(field.default, str | int | float) and told.otherwise is None
    default = field.default if plain else None
    if not name.startswith("-"):
        return click.argument(field.name, required=False, cls=SettingArgument)
    more: dict[str, Any] = {
        "cls": SettingOption if field.repr else SecretOption,
        "hidden": told.hidden,
        "help": _help(told, form),
        "metavar": told.metavar or None,
        **extra,
    }
    if hint is bool:
        # On and off, so that what is typed goes before what a file says.
        return click.option(f"--{option.words}/--no-{option.words}", field.name, default=default, **more)
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
