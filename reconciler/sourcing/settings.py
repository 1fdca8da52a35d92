"""How tenants' repositories are followed: what may be changed by whoever runs the server, and by tests."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceBounds:
    """What one source may have, and one visit take. `disk`: bytes of its repository here, with what comes. `objects`:
    of one pack. `look`: seconds within which a remote says where its branch stands. `visit`: seconds of a look with
    what it fetches. `connect`: until a connection is secured. `quiet`: for which an answer may be silent. `cpu`:
    seconds of CPU that it takes here to read a remote's answers. `memory`: bytes of addresses that git gets for
    checking what came; `largest`: bytes of one object, unpacked.
    """

    disk: int = 512 * 1024 * 1024
    objects: int = 2_000_000
    look: float = 20.0
    visit: float = 120.0
    connect: float = 5.0
    quiet: float = 30.0
    cpu: float = 20.0
    memory: int = 2 * 1024 * 1024 * 1024
    largest: int = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """`interval`: seconds between two looks, spread by `spread` of it. `longest`: between two looks at a source with
    faults. `least`: between two looks, whoever asks. `slots`: visits at a time. `brief`: seconds after which a visit is
    a slow one; those share half of the slots. `kept`: seconds for which a head that was left stays, and a repository
    that nobody follows any more; `clean`: between two looks for those. `packs`: of one repository, until they are
    packed into few. `together`: bytes of all repositories here."""

    interval: float = 60.0
    spread: float = 0.1
    longest: float = 600.0
    least: float = 5.0
    slots: int = 8
    brief: float = 5.0
    kept: float = 3600.0
    clean: float = 60.0
    packs: int = 20
    together: int = 16 * 1024 * 1024 * 1024
    bounds: SourceBounds = field(default=SourceBounds())


DEFAULT = FollowSettings()
