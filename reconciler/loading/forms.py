"""Objects of a workspace that appears, from a form: what all say is found out once, and what is its own is put in.

Called by appearing and effects for what every workspace has. A form is made of an object as it is made for a workspace
that is none: with a name, a cluster, a time and whatever else is a workspace's own drawn by lot, so that no tenant can
know them and have a text of his taken for one. Whatever does not fit a form is made like any other object.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from enum import Enum
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.commits import CommitRef, own
from apiserver.model.identity import logical_cluster_name
from apiserver.model.keys import Key
from apiserver.model.remembered import Remembered
from apiserver.storage.protocol import NEVER, Put
from apiserver.storage.templates import Form, Parameter, form_of
from reconciler.loading.moment import Moment

_MOST, _LONGEST = 4 * 1024 * 1024, 16 * 1024
"""Bytes of all forms, and of what one follows from."""
_EACH = 1024
"""Bytes of one beside its text."""
_TIMES = 2**32
"""Seconds since 1970 that a time is drawn from."""

Signature = tuple[str | bytes, ...]
"""What an object follows from beside the texts that are put in."""


class Nobody(NamedTuple):
    """A workspace that is none, with the file that declares it and the moment at which it appears."""

    path: str
    cluster: str
    parent: str
    parent_cluster: str
    file: str
    moment: Moment

    @staticmethod
    def drawn() -> Nobody:
        parent, name, place = (f"x{secrets.token_hex(12)}" for _ in range(3))
        commit, path = own(secrets.token_hex(20)), f"{parent}:{name}"
        cluster, above = (logical_cluster_name("", each, commit) for each in (path, parent))
        return Nobody(path, cluster, parent, above, f"{place}/{name}", Moment(commit, secrets.randbelow(_TIMES)))

    @property
    def name(self) -> str:
        return paths.base(self.path)

    def at(self, _: CommitRef, _fallback: int = 0) -> Moment:
        """As moment.Moments, which know of no such commit."""
        return self.moment


class Example(NamedTuple):
    """An object of a workspace that is none, with the texts that are its own."""

    key: Key
    value: bytes
    parameters: tuple[Parameter, ...]


Make = Callable[[Nobody], Example | None]
"""Makes an example as any such object is made; None where it cannot be one."""


class _Known(Enum):
    """Of a signature without a form: it was asked for once, or there can be none."""

    ONCE = "once"
    NONE = "none"


class Forms:
    """Those of a process. One is made when it is asked for a second time: most commits make one workspace at most."""

    def __init__(self) -> None:
        self._kept: Remembered[Signature, Form | _Known] = Remembered(_MOST)

    def put(self, signature: Signature, make: Make, key: Key, texts: Iterable[str]) -> Put | None:
        """Writes the object at `key`, which is new, with its own `texts` in the order of an example's parameters; None
        where it has to be made in full."""
        found = self._kept.get(signature)
        form = found if isinstance(found, Form) else self._next(signature, found, make)
        filled = form.filled(key, texts) if form is not None else None
        if filled is None:
            return None
        return Put(key, b"", NEVER, like=filled)

    def _next(self, signature: Signature, found: _Known | None, make: Make) -> Form | None:
        size = _EACH + sum(len(part) for part in signature)
        if found is _Known.NONE or size > _LONGEST:
            return None
        form = _made(make) if found is _Known.ONCE else None
        known = form or (_Known.NONE if found is _Known.ONCE else _Known.ONCE)
        self._kept.put(signature, known, size + (len(form.template) if form is not None else 0))
        return form


def _made(make: Make) -> Form | None:
    """None where the objects of two workspaces differ in more than the texts that are put in."""
    one, other = (_form(make(Nobody.drawn())) for _ in range(2))
    return one if one == other else None


def _form(example: Example | None) -> Form | None:
    return form_of(example.key, example.value, example.parameters) if example is not None else None
