"""A list that a forge hands out in pages, read to its end. Called by the dialects.

All three say in the header `Link` whether there is a next page. It is asked for by its number: the URL in the header is
the forge's word, and the token goes nowhere on anybody's word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from email.message import Message
from typing import Any

from reconciler.forges.errors import ForgeError
from reconciler.forges.forge import fields
from reconciler.forges.forgeclient import ForgeClient, ForgeRequest

MOST = 100
"""Pages: ten thousand comments."""

_NEXT = re.compile(r';\s*rel="?next"?(?=\s*[,;]|\s*$)')


def listed(client: ForgeClient, path: str, query: Mapping[str, str | int]) -> Iterator[dict[str, Any]]:
    """Each object of all pages. Raises ForgeError, also where there are more pages than anybody reads: what was looked
    for may be on one of them."""
    for page in range(1, MOST + 1):
        answer = client.ask(ForgeRequest("GET", path, {**query, "page": page}))
        if not isinstance(answer.value, list):
            raise ForgeError(f"{client.api}{path} answers with no list", "is the URL a forge's, and of that kind?")
        yield from map(fields, answer.value)
        if not answer.value or not _goes_on(answer.headers):
            return
    raise ForgeError(f"{client.api}{path} has more than {MOST} pages", "lock the pull request, and open another one")


def _goes_on(headers: Message) -> bool:
    return any(_NEXT.search(each) for each in headers.get_all("Link", []))
