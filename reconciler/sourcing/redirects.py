"""Where a redirect leads, as far as it may be told: forges answer with one when a repository was renamed.

Called by connection.py. Nobody goes there: a host must not send this server elsewhere, nor credentials along. What it
says becomes words only where it is a URL that may be followed, on the same host. Pure.
"""

from __future__ import annotations

from urllib.parse import urljoin

from reconciler.repository.sourcerefs import SourceAddress, SourceRefused, address

_LONGEST = 300


def told(source: SourceAddress, asked: str, location: str) -> str:
    """The repository's URL by now, or "". `asked`: the path below the repository's of what was asked for;
    `location`: what the host said."""
    path, _, query = asked.partition("?")
    try:
        url = urljoin(source.url.rstrip("/") + asked, location)
        found = address(url.removesuffix(f"?{query}").removesuffix(path), source.branch)
    except (SourceRefused, ValueError):
        return ""
    moved = url.endswith(asked) and len(found.url) <= _LONGEST and found.path != source.path
    return found.url if moved and (found.host, found.port) == (source.host, source.port) else ""
