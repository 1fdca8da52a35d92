"""What rendering a directory comes to, and who is asked for it.

`Renders` is what sources of manifests are given; `renderer.DirectoryRenderer` is the real one, `NOWHERE` the one of
whoever has none.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from reconciler.rendering.request import RenderRequest, Tool


class Rendered(NamedTuple):
    """Either `output` or `fault`.

    `output`: YAML documents, at least one byte that is no space. `fault`: why there are none, for people: the program's
    own words where it has some, made harmless, with paths of the repository, at most 2,000 characters. `hint`: what to
    do. `lasting`: whether the same files give the same again; False where time or memory of the machine ran out, or
    there is no program or no sandbox here."""

    output: bytes = b""
    fault: str = ""
    hint: str = ""
    lasting: bool = True


class Renders(Protocol):
    """Threads may share one."""

    def rendered(self, request: RenderRequest) -> Rendered:
        """Waits for it, at most some seconds more than a program may run once its turn has come. Never raises for what
        files say; raises RepositoryUnreadable where `request.files` or a blob does."""
        ...

    def expect(self, requests: Iterable[RenderRequest]) -> None:
        """Begins in the background with what is not at hand, as many at once as there are cores; `rendered` then waits
        for what is left. Never raises, and returns at once."""
        ...

    def is_expected(self, request: RenderRequest) -> bool:
        """Whether it was expected and has not come yet, so that `rendered` would wait."""
        ...

    def is_at_hand(self, request: RenderRequest) -> bool:
        """Whether `rendered` would answer at once."""
        ...

    def version(self, tool: Tool) -> str:
        """As the program tells it; "" where it cannot run here."""
        ...

    @property
    def fingerprint(self) -> str:
        """Of all that decides outputs besides requests: versions and settings. What was rendered under another one may
        be rendered otherwise now. Where a program is missing, its part says so."""
        ...


class Nowhere:
    """Renders nothing, and says so of every directory."""

    def rendered(self, request: RenderRequest) -> Rendered:
        fault = f"{request.tool} is not run here"
        return Rendered(fault=fault, hint="commands and servers that render are told where it is", lasting=False)

    def expect(self, requests: Iterable[RenderRequest]) -> None:
        """Nothing comes."""

    def is_expected(self, request: RenderRequest) -> bool:  # noqa: ARG002
        return False

    def is_at_hand(self, request: RenderRequest) -> bool:  # noqa: ARG002
        return True

    def version(self, tool: Tool) -> str:  # noqa: ARG002
        return ""

    @property
    def fingerprint(self) -> str:
        return "nowhere"


NOWHERE: Renders = Nowhere()
