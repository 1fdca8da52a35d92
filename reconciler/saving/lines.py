"""What only a store has, as lines of a file: each one operation that writes it again.

Values, stamps and rows are bytes of any kind.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator

import orjson

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.protocol import Put, PutRow
from reconciler.loading.unrecorded import BY_PATH
from reconciler.saving.archive import BadBackup

_PIECE = 4 << 20
"""Bytes of a file, more or less."""
_TABLES = frozenset({*BY_PATH, Table.CONSUMERS, Table.TYPED, Table.NODE_PORTS})
"""Whose rows may be written again: no row that says who holds what, or what is served."""


def pieces(ops: Iterable[Put | PutRow]) -> Iterator[bytes]:
    """Files of lines, none of them much larger than `_PIECE`."""
    lines: list[bytes] = []
    size = 0
    for op in ops:
        line = _line(op)
        lines.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)


def operations(content: bytes) -> Iterator[Put | PutRow]:
    """Raises BadBackup."""
    for line in content.splitlines():
        try:
            yield _operation(orjson.loads(line))
        except (ValueError, KeyError, TypeError, binascii.Error):
            raise BadBackup("a line of what only the store had does not read") from None


def _line(op: Put | PutRow) -> bytes:
    if isinstance(op, PutRow):
        found: dict[str, object] = {"table": op.table.value, "row": op.row, "bytes": _text(op.value)}
    else:
        found = {"key": [*op.key], "value": _text(op.value), "stamp": _text(op.stamp)}
    return orjson.dumps(found) + b"\n"


def _operation(found: dict[str, str]) -> Put | PutRow:
    if "table" in found:
        table = Table(found["table"])
        if table not in _TABLES:
            raise ValueError
        return PutRow(table, str(found["row"]), base64.b64decode(found["bytes"], validate=True))
    resource, cluster, namespace, name = map(str, found["key"])
    value, stamp = (base64.b64decode(found[each], validate=True) for each in ("value", "stamp"))
    return Put(Key(resource, cluster, namespace, name), value, stamp=stamp)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
