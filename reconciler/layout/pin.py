"""What a workspace.yaml says under spec.serve: a pin, by which the workspace's own content is served as a named commit
has it.

Read by layout/workspace and written by `treeplane pin`. Whether the commit can be that one, and whether the pin is over
by now, is loading/pins' to say.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.model import clock

Object = dict[str, Any]


class Pin(NamedTuple):
    """`commit`: a full id; `until`: RFC 3339, "" for as long as it stands there; `reason`: "" for none."""

    commit: str
    until: str = ""
    reason: str = ""

    @staticmethod
    def of(workspace: Object) -> Pin | None:
        """What a Workspace says, as its schema has it."""
        said = (workspace.get("spec") or {}).get("serve")
        return Pin(**said) if said else None

    @property
    def name(self) -> str:
        """Tells it from the next one: whoever changes its reason alone says the same."""
        return f"{self.commit} {self.until}".rstrip()

    @property
    def due(self) -> int:
        """When it is over, in seconds since 1970; 0: never by itself."""
        return -int(-clock.parse(self.until).timestamp() // 1) if self.until else 0

    def is_over(self, now: float) -> bool:
        return 0 < self.due <= now

    def as_said(self) -> Object:
        """What stands under spec.serve."""
        return {name: value for name, value in self._asdict().items() if value}


def fault(workspace: Object) -> str:
    """What is wrong with the time that a Workspace's pin ends at, "" for nothing; its schema has been looked at."""
    pin = Pin.of(workspace)
    try:
        return f"is {pin.until!r}, which is before 1970" if pin is not None and pin.until and pin.due <= 0 else ""
    except ValueError:
        return f"is {pin.until!r}, which is no time" if pin is not None else ""
