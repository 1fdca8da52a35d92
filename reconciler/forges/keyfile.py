"""A secret in a file of `keys/`, as whoever speaks to a forge or a webhook needs it: what is wrong with it is something
that was not said.

Called by the commands.
"""

from __future__ import annotations

from pathlib import Path

from apiserver.secretfile import NoSecret, SecretFile
from reconciler.forges.errors import NotSaid


class KeyFile:
    """`name`: as messages have it, like keys/forges/token."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = SecretFile(path, name)

    def __repr__(self) -> str:
        return f"KeyFile({self._file})"

    def read(self) -> str:
        """Without line breaks around it. Raises NotSaid."""
        try:
            return self._file.read()
        except NoSecret as error:
            raise NotSaid(error.text, error.hint) from None
