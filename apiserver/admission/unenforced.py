"""Kinds that are stored, served and watched but that this server does not act upon: whoever writes one is told so.

A later version takes kinds off this list as it learns to enforce them.
"""

from __future__ import annotations

from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.served import ServedKind

UNENFORCED: dict[str, str] = {name: kind.unenforced for name, kind in ENTRIES.items() if kind.unenforced}
"""By qualified resource: what does not happen."""


def warnings(kind: ServedKind) -> tuple[str, ...]:
    """What the answer to a write of this kind says in Warning headers."""
    why = UNENFORCED.get(kind.qualified)
    return (f"{kind.kind} is stored but not enforced yet: {why}",) if why else ()
