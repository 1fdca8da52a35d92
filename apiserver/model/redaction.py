"""What must not be shown of a repository's name, wherever one is shown: its credentials.

Called by whoever shows one, and by the log for each of its lines. Pure functions on text.
"""

from __future__ import annotations

import re

_CREDENTIALS = re.compile(
    r"""(?<=://)(?:[^\s/?#'"]*@          # up to the last @ before the path: a password may hold one
        | [^\s/@:'"]+:(?!\d+[/?#])[^\s'"]*@)  # and what is no URL for the slash in its password
    | (?<![^\s'"])[^\s/:@'"]+:[^\s/@'"]+@(?=[\w.-]+:)  # user:password@host:path, which no program takes""",
    re.VERBOSE,
)
_QUERY = re.compile(r"""(://[^\s?'"]*\?)[^\s'"]+""")


def redact(text: str) -> str:
    """`text` without what may be secret in the name of a repository: user, password and query of URLs, and what stands
    before the host in `user:password@host:path`."""
    return _QUERY.sub(r"\1***", _CREDENTIALS.sub("***@", text))
