"""The file `allowed_signers`, in OpenSSH's format: whose which key is.

Called by signers.py, which tells its problems, and by sshkeys.py, which looks a key up. OpenSSH's own search is not
used for that: it takes patterns for names, ends at the first line that it cannot read, and says of a key all names that
it may sign as. Here a line is read as strictly as it can be, or counts for nobody; one that is good is written anew for
ssh-keygen, from what was understood of it, so nothing of a line that was not understood has an effect.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from reconciler.signatures import sshsig
from reconciler.signatures.names import unfit

_PRINCIPALS = re.compile(r'(?:"([^"]*)"|([^\s"]+))[ \t]+(.*)')
_KEY = re.compile(r"([a-z0-9@.-]{1,64})[ \t]+([A-Za-z0-9+/]{16,}={0,2})(?:[ \t].*)?")
_OPTIONS = re.compile(r'((?:[^\s"]|"[^"]*")+)[ \t]+(.*)')
_OPTION = re.compile(r'([A-Za-z-]+)(?:="([^"\\]*)")?(?:,(?=.)|$)')
_TIME = re.compile(r"(\d{8}|\d{12}|\d{14})Z?")
_LONGEST, _MOST, _MOST_TOLD = 16 * 1024, 20_000, 100
"""Characters of a line; lines, of which no more with keys fit into what is read; problems."""
_NOT_A_LINE = "it is not `NAME [OPTIONS] TYPE KEY`"


class AllowedKey(NamedTuple):
    """One line that counts. `options` as ssh-keygen is to read them, with a blank behind them if there are any;
    `authority`: the key signs certificates, and no commits."""

    line: int
    user: str
    options: str
    key: bytes
    authority: bool


class AllowedKeys(NamedTuple):
    """`keys` by the bytes of the key; `problems` are numbers of lines, and why they count for nobody, of the first of
    them; `untold`: how many more there are."""

    keys: Mapping[bytes, tuple[AllowedKey, ...]]
    problems: tuple[tuple[int, str], ...]
    untold: int


class _NotRead(Exception):
    pass


@lru_cache(maxsize=8)
def read(data: bytes) -> AllowedKeys:
    """Never raises: what cannot be read is a problem of its line alone."""
    found, problems, untold = defaultdict[bytes, list[AllowedKey]](list), list[tuple[int, str]](), 0
    lines = data.split(b"\n", _MOST)
    if len(lines) > _MOST:
        problems.append((_MOST + 1, f"no line from here on is read: there are more than {_MOST}"))
        del lines[_MOST:]
    for number, raw in enumerate(lines, 1):
        try:
            text = raw.decode().strip(" \t\r")
            if text and not text.startswith("#"):
                made = _line(number, text)
                found[made.key].append(made)
        except (UnicodeDecodeError, _NotRead) as error:
            if len(problems) == _MOST_TOLD:
                untold += 1
            else:
                problems.append((number, str(error) if isinstance(error, _NotRead) else "it is not UTF-8"))
    return AllowedKeys({key: tuple(its) for key, its in found.items()}, tuple(problems), untold)


def _line(number: int, text: str) -> AllowedKey:
    if len(text) > _LONGEST:
        raise _NotRead(f"it is longer than {_LONGEST} characters")
    if not text.replace("\t", " ").isprintable():
        raise _NotRead("it holds characters that cannot be seen")
    split = _PRINCIPALS.fullmatch(text)
    if split is None:
        raise _NotRead(_NOT_A_LINE)
    names = (split[1] if split[1] is not None else split[2]).split(",")
    for name in names:
        if unfit(name):
            raise _NotRead(unfit(name))
    rest, options, authority = split[3], "", False
    key = _key(rest)
    if key is None:
        parted = _OPTIONS.fullmatch(rest)
        if parted is None:
            raise _NotRead(_NOT_A_LINE)
        options, authority = _options(parted[1])
        key = _key(parted[2])
    if key is None:
        raise _NotRead(_NOT_A_LINE)
    return AllowedKey(number, names[0], options, key, authority)


def _key(text: str) -> bytes | None:
    """None for what does not look like one."""
    found = _KEY.fullmatch(text)
    if found is None:
        return None
    try:
        key = base64.b64decode(found[2], validate=True)
        if sshsig.key_type(key) != found[1]:
            raise _NotRead("the key is of another type than the line says")
    except (binascii.Error, ValueError) as error:
        raise _NotRead("the key is damaged") from error
    if sshsig.is_certificate(found[1]):
        raise _NotRead("a certificate is no key: write the key of its authority, with cert-authority")
    return key


def _options(text: str) -> tuple[str, bool]:
    """As ssh-keygen is to read them, and whether the key is an authority."""
    given, at = dict[str, str | None](), 0
    while at < len(text):
        found = _OPTION.match(text, at)
        if found is None:
            raise _NotRead('its options are not like `valid-before="20301231Z"`')
        name, at = found[1].lower(), found.end()
        if name in given:
            raise _NotRead(f"it says {name} twice")
        given[name] = found[2]
    out, times = list[str](), list[datetime]()
    for name, value in given.items():
        match name, value:
            case "cert-authority", None:
                out.append(name)
            case "namespaces", str() if value:
                out.append(f'{name}="{value}"')
            case "valid-after" | "valid-before", str():
                times.append(_time(value))
                # Without its Z, which older programs do not know: sshkeys.py has them reckon in UTC.
                out.append(f'{name}="{times[-1]:%Y%m%d%H%M%S}"')
            case _:
                raise _NotRead(f"the option {name} is unknown, or not written so")
    if len(times) == 2 and (times[0] >= times[1]) == (
        list(given).index("valid-after") < list(given).index("valid-before")
    ):
        raise _NotRead("it ends before it begins to be valid")
    return ",".join(out) + " ", "cert-authority" in given


def _time(text: str) -> datetime:
    """Reckoned in UTC, with or without a Z: the same for every server, wherever it stands."""
    found = _TIME.fullmatch(text)
    try:
        if found is not None:
            made = datetime.strptime(found[1].ljust(14, "0"), "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            if made.year > 1970:
                return made
    except ValueError:
        pass
    raise _NotRead("a time is not like 20301231Z or 20301231235959Z")
