"""What the reconciler's process has to know. Written by `up`, handed over as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ReconcileSettings:
    """Paths are absolute."""

    data_dir: Path
    """Holds store/, mirror/, targets/ and push.sock."""

    keys_dir: Path
    """CA, certificates, identities/ and secrets/."""

    source: str
    """The repository: a path or a URL."""

    branch: str
    """The branch that is served."""

    url: str
    """The server's URL, as clients are told it."""

    local_url: str
    """The server's URL on this machine, for embedded targets."""

    trusted_targets: tuple[str, ...] = ()
    """Workspaces whose sync targets may be at any address."""

    sync_writes: bool = True
    """Whether a write is on disk before it counts. Only tests turn it off."""

    heartbeat: float = 20.0
    """Seconds between two looks at a sync target."""

    threshold: float = 60.0
    """Seconds without an answer after which a sync target is not Ready."""

    tolerance: float = 300.0
    """Seconds of not being Ready after which a sync target loses its placements to another."""

    history: float = 0.0
    """Seconds that past states are kept at least; 0: as long as there is room."""

    events: float = 3600.0
    """Seconds that an Event stays after it was last written."""

    hosted: bool = False
    """Whether the repository is the server's own, which it hosts."""

    poll: float = 10.0
    """Seconds from one look at a URL to the next."""

    take_head: str = ""
    """A head of the branch that is followed whatever stands against it."""

    take_over: str = ""
    """The server (installation/start) that this one takes the fleet over from; "": none."""

    new_identities: str = ""
    """The commit from which the fleet begins with new identities although it was recorded before; "": none."""

    roles: str = "auto"
    """`together`: one process has all roles; `apart`: who loads lends the others; `auto`: as large as the fleet is."""

    restarted: bool = False
    """Whether this process takes the place of one that ended, in the same server."""

    command: tuple[str, ...] = ("treeplane", "up")
    """The command line of `up`, as messages may show it."""

    def to_json(self) -> str:
        return json.dumps({k: str(v) if isinstance(v, Path) else v for k, v in asdict(self).items()})

    @staticmethod
    def from_json(text: str) -> ReconcileSettings:
        found = json.loads(text)
        for name in ("data_dir", "keys_dir"):
            found[name] = Path(found[name])
        for name in ("command", "trusted_targets"):
            found[name] = tuple(found[name])
        return ReconcileSettings(**found)
