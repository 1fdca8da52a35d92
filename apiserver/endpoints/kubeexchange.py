"""One exchange of the Kubernetes API: with what was found out of the request, for who counts them.

Made and filled by kube.py, read by counting.py.
"""

from __future__ import annotations

from apiserver.endpoints.exchange import ASGIScope, Exchange, Receive, Send
from apiserver.endpoints.paths import RequestPath
from apiserver.registry.served import ServedKind

Seen = tuple[str, str, str, str, str, str, bool]
"""What a request was for, as far as that is told, in metrics' words: its verb; group, version and resource of its kind;
subresource; scope; whether the kind is served there, else somebody may have made the name up. A plain tuple, since one
is made for each request, and a named one takes six times as long."""


class KubeExchange(Exchange):
    """`place`: its path. `verb`: "" where nobody looked. `kind`: once it is known that one may ask for it. `watch`: of
    a watch, what it is counted as."""

    __slots__ = ("kind", "place", "verb", "watch")

    def __init__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        super().__init__(scope, receive, send)
        self.place: RequestPath | None = None
        self.verb = ""
        self.kind: ServedKind | None = None
        self.watch: Seen | None = None
