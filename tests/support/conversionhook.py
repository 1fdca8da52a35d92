"""A conversion webhook: a real HTTPS server on loopback, in threads of its own."""

from __future__ import annotations

import base64
import http.server
import ssl
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from apiserver.auth.pki import ensure_keys

Object = dict[str, Any]


class Hook:
    """Turns `spec.size` of v1 into `spec.length` of v2, and back. `spoil` changes its answers."""

    def __init__(self, directory: Path) -> None:
        keys = ensure_keys(directory, ["hook.default.svc"])
        self.ca = base64.b64encode(keys.ca.read_bytes()).decode()
        self.asked: list[list[str]] = []
        self.spoil: Callable[[Object], Any] = lambda answer: None
        self.dead: threading.Event | None = None
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                review = orjson.loads(self.rfile.read(int(self.headers["content-length"])))
                answer = orjson.dumps(hook.answer(review))
                self.send_response(200)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(keys.server.certificate, keys.server.key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, review: Object) -> Object:
        request = review["request"]
        self.asked.append([o["metadata"]["name"] for o in request["objects"]])
        if self.dead is not None:
            self.dead.wait(20)
        made = [self.converted(o, request["desiredAPIVersion"]) for o in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": made}
        answer = {**review, "response": response}
        self.spoil(answer)
        return answer

    @staticmethod
    def converted(obj: Object, version: str) -> Object:
        names = {"size": "length"} if version == "z.io/v2" else {"length": "size"}
        spec = {names.get(k, k): v for k, v in obj.get("spec", {}).items()}
        return {**obj, "apiVersion": version, "spec": {**spec, "extra": "pruned"}}

    def close(self) -> None:
        """Twice is as good as once."""
        if self.dead is not None:
            self.dead.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def definition(hook: Hook, storage: str = "v1", **client: Any) -> Object:
    def version(name: str, field: str) -> Object:
        spec = {"type": "object", "properties": {field: {"type": "integer"}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        return {"name": name, "served": True, "storage": name == storage, "schema": schema,
                "subresources": {"scale": {"specReplicasPath": f".spec.{field}", "statusReplicasPath": ".status.n"}},
                "selectableFields": [{"jsonPath": f".spec.{field}"}]}  # fmt: skip

    client = client or {"url": f"https://127.0.0.1:{hook.port}/convert"}
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {**client, "caBundle": hook.ca}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ws.z.io"},
        "spec": {"group": "z.io", "scope": "Namespaced", "names": {"plural": "ws", "kind": "W"},
                 "versions": [version("v1", "size"), version("v2", "length")],
                 "conversion": {"strategy": "Webhook", "webhook": webhook}},
    }  # fmt: skip
