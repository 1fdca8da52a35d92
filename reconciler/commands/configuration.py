"""What a file (`--config`) and the environment say of the options of a command: one object of a kind, with the options'
names as keys, and variables TREEPLANE_<OPTION>. The command line goes before the environment, that before the file.

Called by options.py, which asks for one option at a time and reads what it gets as it reads what was typed. Names
follow from the fields; nothing is listed here but the variables that are something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import Field, dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

from apiserver.model.counts import counted
from apiserver.options import Option
from reconciler.commands.failure import Failure
from reconciler.commands.forms import FORMS
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.yamldoc import YamlDocument, line_of, parse
from reconciler.plugin.meant import meant

API_VERSION = "treeplane.dev/v1alpha1"
PREFIX = "TREEPLANE_"
CONFIG = f"{PREFIX}CONFIG"

_USAGE = 2
_OTHERS = frozenset({
    "FORGE_TOKEN",
    "GIT_PASSWORD", "GIT_USER", "INCOMING", "LOG", "PROPOSES", "PUSHER", "SETTINGS", "TIPS",
    "GOLDEN", "TEST_MARK",
})  # fmt: skip
"""Variables that are no options: `treeplane comment`'s, what processes tell their children, and tests'."""

_SERVICE = re.compile(r"(?:[A-Z0-9_]*_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_[0-9]+_(?:TCP|UDP|SCTP)\w*)?)")
"""What Kubernetes tells the containers of a namespace of a Service that is called treeplane, or treeplane-something."""


class KnownOption(NamedTuple):
    """One option: its field, that one's type, and what it says."""

    field: Field[Any]
    hint: Any
    told: Option

    @property
    def typed(self) -> str:
        """On the command line; an argument has no hyphens."""
        return self.told.name or f"--{self.field.name.replace('_', '-')}"

    @property
    def words(self) -> str:
        """With hyphens between them. A switch is called by what it switches on."""
        words = self.typed.lower().removeprefix("--")
        return words.removeprefix("no-") if self.hint is bool else words

    @property
    def key(self) -> str:
        """In a file: `--max-push-mib` is maxPushMib, REPOSITORY repository."""
        first, *rest = self.words.split("-")
        return first + "".join(map(str.capitalize, rest))

    @property
    def variable(self) -> str:
        return PREFIX + self.words.replace("-", "_").upper()

    @property
    def is_list(self) -> bool:
        return get_origin(self.hint) is tuple

    def text(self, texts: list[str]) -> Any:
        """As the command line has several values."""
        return texts if not FORMS[self.told.form].joined else ",".join(texts)


@dataclass(frozen=True, slots=True)
class SaidElsewhere:
    """A value of an option: a text, or several; and where it stands."""

    value: Any
    place: str


class Configuration:
    """What is said of a command's options where they were not typed, by field."""

    def __init__(self, found: dict[str, SaidElsewhere]) -> None:
        self._found = found

    @staticmethod
    def read(kind: str, known: list[KnownOption], file: str, environment: Mapping[str, str]) -> Configuration:
        """`file`: "" for none. Raises Failure with everything that is wrong."""
        return Configuration({
            **(_of_file(kind, known, Path(file)) if file else {}),
            **_of_environment(known, environment),
        })  # fmt: skip

    def said(self, field: str) -> SaidElsewhere | None:
        return self._found.get(field)


def check_names(names: Mapping[str, str], everybodys: list[KnownOption]) -> None:
    """Of the variables that begin as ours do, whether each is an option of some command, or something else that is
    known: a misspelled one would be passed over. Raises Failure."""
    known = {option.variable.removeprefix(PREFIX) for option in everybodys} | {CONFIG.removeprefix(PREFIX)}
    ours = [name.removeprefix(PREFIX) for name in sorted(names) if name.startswith(PREFIX)]
    lines = [
        f"{PREFIX}{name}: no option is called so: unset it{meant(name, known)}"
        for name in ours
        if name not in known and not _is_something_else(name)
    ]
    if lines:
        raise Failure("\n".join(lines), code=_USAGE)


def _is_something_else(name: str) -> bool:
    return name in _OTHERS or _SERVICE.fullmatch(name) is not None


def _of_environment(known: list[KnownOption], environment: Mapping[str, str]) -> dict[str, SaidElsewhere]:
    """An empty variable says nothing. Lists have commas between their items."""
    found = {}
    for option in known:
        text = environment.get(option.variable, "")
        if not text:
            continue
        if option.hint is bool and text not in ("true", "false"):
            raise Failure(f"{option.variable}: it is true or false", code=_USAGE)
        value = option.text([part.strip() for part in text.split(",") if part.strip()]) if option.is_list else text
        found[option.field.name] = SaidElsewhere(value, option.variable)
    return found


def _of_file(kind: str, known: list[KnownOption], file: Path) -> dict[str, SaidElsewhere]:
    document = _read(kind, file)
    by_key = {option.key: option for option in known}
    found, faults = {}, []
    for key, value in document.value.items():
        if key in ("apiVersion", "kind"):
            continue
        line = line_of(document, key)
        if key not in by_key:
            faults.append(f"{file}:{line}: there is no {key}{meant(key, by_key)}")
            continue
        option = by_key[key]
        wrong = _unfit(option, value)
        if wrong:
            faults.append(f"{file}:{line}: {key}: {wrong}")
        else:
            found[option.field.name] = SaidElsewhere(_texts(option, value, file), f"{file}:{line}: {key}")
    if faults:
        raise Failure("\n".join(faults), "docs/settings.md has all keys", _USAGE)
    return found


def _read(kind: str, file: Path) -> YamlDocument:
    try:
        documents = parse(file.read_bytes(), f"{file}", positions=True)
    except OSError as error:
        raise Failure(f"--config: {file}: {error.strerror}", code=_USAGE) from None
    except BadFile as error:
        raise Failure("\n".join(map(str, error.errors)), code=_USAGE) from None
    if len(documents) != 1:
        raise Failure(f"{file}: it holds {counted(len(documents), 'object')}", f"it is one of kind {kind}", _USAGE)
    [document] = documents
    value = document.value
    faults = [
        LayoutError(f"{file}", line_of(document, field), 0, f"{field} is {value.get(field)!r}", f"say {wanted}")
        for field, wanted in (("apiVersion", API_VERSION), ("kind", kind))
        if value.get(field) != wanted
    ]
    if faults:
        raise Failure("\n".join(map(str, faults)), code=_USAGE)
    return document


def _unfit(option: KnownOption, value: Any) -> str:
    """What is wrong with a value's type; never the value itself, which may be a secret."""
    if option.is_list:
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        return "" if fits else "it is a list of texts"
    if option.hint is bool:
        return "" if isinstance(value, bool) else "it is true or false"
    if option.hint in (int, float):
        return "" if isinstance(value, int | float) and not isinstance(value, bool) else "it is a number"
    return "" if isinstance(value, str) and value else "it is a text: write it in quotes"


def _texts(option: KnownOption, value: Any, file: Path) -> Any:
    """As they would be typed. Names of files count from the directory of the one that says them."""
    if option.is_list:
        return option.text(value)
    if isinstance(value, bool):
        return str(value).lower()
    if Path in (option.hint, *get_args(option.hint)) or option.told.place:
        return _from(file.absolute().parent, value, must=option.told.place)
    return str(value)


def _from(directory: Path, text: str, *, must: bool) -> str:
    """`must`: only if it is there, since the text may be a URL."""
    there = directory / text
    return text if must and ("://" in text or not there.exists()) else str(there)
