"""A watch over WebSocket: the same exchange, each event as one text frame.

Browsers and Headlamp watch this way. Called by kube.py for every WebSocket; what is asked, who may and what is answered
are decided by the same code as for HTTP. Whatever is not a watch is answered as plain HTTP, without a WebSocket.
"""

from __future__ import annotations

from apiserver.endpoints.exchange import ASGIScope, Headers, Message, Receive, Send
from apiserver.endpoints.kubeexchange import KubeExchange

_BEARER = "base64url.bearer.authorization.k8s.io."
_NORMAL = 1000


class SocketExchange(KubeExchange):
    """`start` accepts the WebSocket, `chunk` sends a frame for each line, the last chunk closes it."""

    __slots__ = ("_socket",)

    def __init__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        async def received() -> Message:
            message = await receive()
            gone = message["type"] == "websocket.disconnect"
            return {"type": "http.disconnect"} if gone else message

        async def refuse(message: Message) -> None:
            """An answer before the WebSocket stands: an error, or a document that is no stream."""
            await send({**message, "type": f"websocket.{message['type']}"})

        super().__init__({**scope, "method": "GET"}, received, refuse)
        self._socket = send

    async def start(self, status: int, headers: Headers) -> None:  # noqa: ARG002 (a WebSocket has its own)
        """Raises ConnectionResetError if the client is gone."""
        self.answered, self.status = True, 101
        await self._frame({"type": "websocket.accept", "subprotocol": subprotocol(self.scope), "headers": self.said})

    async def chunk(self, body: bytes, *, more: bool = True) -> None:
        """Raises ConnectionResetError if the client is gone."""
        for line in body.splitlines():
            await self._frame({"type": "websocket.send", "text": line.decode()})
        if not more:
            await self._frame({"type": "websocket.close", "code": _NORMAL})

    async def _frame(self, message: Message) -> None:
        try:
            await self._socket(message)
        except OSError as error:
            raise ConnectionResetError("the client went away") from error


def subprotocol(scope: ASGIScope) -> str | None:
    """The first one offered that is no token: a token is not to be sent back."""
    return next((offered for offered in scope.get("subprotocols") or () if not offered.startswith(_BEARER)), None)
