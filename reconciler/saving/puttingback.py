"""What only the lost store had, put into the new one when this server holds the fleet: before the first load, which
recovers all else around it.

Called by the holder, and by a drill, which throws the store away. What is to be put back waits in `unrecorded/` of the
data directory, where `treeplane recover` put it, until a load with it is complete: an observer shows what another
server records, of which it is no part.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from apiserver.model.counts import counted
from apiserver.model.keys import Key
from apiserver.storage.protocol import Put, PutRow, Store
from reconciler.saving.lines import operations

UNRECORDED = "unrecorded"
_AT_ONCE = 500


class PuttingBack:
    """`begin`, the first load, `end`. `directory`: where it waits."""

    def __init__(self, directory: Path, store: Store) -> None:
        self._directory, self._store = directory, store

    @property
    def waits(self) -> bool:
        return self._directory.is_dir()

    def begin(self) -> None:
        """Where something waits. The store holds nothing else then. Cut off, it is done again. Raises BadBackup."""
        if not self.waits:
            return
        self._store.clear()
        found = self._operations()
        while ops := [*islice(found, _AT_ONCE)]:
            self._store.fill(*ops).result()

    def end(self) -> str:
        """Once a load with it is complete, it waits no more; what is to be said."""
        said = self.came_back()
        shutil.rmtree(self._directory)
        return said

    def came_back(self) -> str:
        """Says what did."""
        back, missing = 0, list[Key]()
        for op in self._operations():
            if isinstance(op, Put):
                if self._store.get(op.key) is not None:
                    back += 1
                else:
                    missing.append(op.key)
        came = counted(back, "object came back that was", "objects came back that were")
        said = f"of the backup {came} made through the API"
        if missing:
            named = ", ".join(f"{key.resource} {key.namespace}/{key.name}" for key in missing[:10])
            said += f"; {len(missing)} did not, whose workspaces are not in the repository: {named}"
            said += ", …" if len(missing) > 10 else ""
        return said

    def _operations(self) -> Iterator[Put | PutRow]:
        for file in sorted(self._directory.iterdir()):
            yield from operations(file.read_bytes())
