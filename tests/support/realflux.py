"""Flux' kustomize-controller at a real cluster: it applies what a repository has, and prunes what it has no more.

realclusters/fluxbinary has the program. What Flux' other half does stands here: a directory is packed, offered over
HTTP, and told by a GitRepository, as source-controller leaves one.
"""

from __future__ import annotations

import hashlib
import http.server
import io
import json
import os
import signal
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from realclusters import fluxbinary
from realclusters.binaries import Unavailable
from realclusters.cluster import RealCluster
from realclusters.processes import Process

NAMESPACE = "flux-system"
_SOURCE_GROUP = "source.toolkit.fluxcd.io"
_KUSTOMIZATIONS = f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations"
_SOURCES = f"/apis/{_SOURCE_GROUP}/v1/namespaces/{NAMESPACE}/gitrepositories"
_SOURCES_OF = {"GitRepository": "gitrepositories", "OCIRepository": "ocirepositories", "Bucket": "buckets"}
_ASKED = "reconcile.fluxcd.io/requestedAt"
_OPTIONS = ("--watch-all-namespaces", "--metrics-addr=0", "--health-addr=0", "--events-addr=", "--log-level=info")


def program() -> Path:
    """Skips the test, by name, where there is none."""
    try:
        return fluxbinary.find()
    except Unavailable as error:
        pytest.skip(f"no Flux: {error}")


class RealFlux:
    """What stands in its namespace of one cluster."""

    def __init__(self, cluster: RealCluster, folder: Path, eventually: Callable[..., Any]) -> None:
        self._cluster, self._folder, self._eventually = cluster, folder, eventually
        self._packed: dict[str, bytes] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """With its definitions, and gone with them and their objects at the end. What it made stays where it does not
        prune."""
        binary = program()
        self._cluster.kubectl("apply", "--server-side", "-f", str(binary.parent / "crds"))
        for kind in _SOURCES_OF:
            self._cluster.kubectl("apply", "-f", "-", input=json.dumps(_definition(kind)))
        self._cluster.kubectl("create", "namespace", NAMESPACE)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._offering())
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._url = f"http://127.0.0.1:{server.server_address[1]}"
        variables = {"KUBECONFIG": str(self._cluster.kubeconfig_path), "RUNTIME_NAMESPACE": NAMESPACE}
        process = Process([str(binary), *_OPTIONS], self._folder, {**os.environ, **variables})
        try:
            yield
        finally:
            process.end(signal.SIGTERM)
            server.shutdown()
            server.server_close()
            self._free()
            sources = (f"{plural}.{_SOURCE_GROUP}" for plural in _SOURCES_OF.values())
            self._cluster.kubectl("delete", "crd", "kustomizations.kustomize.toolkit.fluxcd.io", *sources)
            self._cluster.kubectl("delete", "namespace", NAMESPACE)

    def offer(self, directory: Path) -> None:
        """What the repository has, as source-controller tells it."""
        packed = _packed(directory)
        digest = hashlib.sha256(packed).hexdigest()
        self._packed[f"/{digest}.tar.gz"] = packed
        source = {
            "apiVersion": f"{_SOURCE_GROUP}/v1",
            "kind": "GitRepository",
            "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
            "spec": {"url": "https://git.example/fleet.git", "interval": "10m"},
        }
        self._cluster.kubectl("apply", "-f", "-", input=json.dumps(source))
        moment = "2026-01-01T00:00:00Z"
        artifact = {
            "url": f"{self._url}/{digest}.tar.gz",
            "path": f"{digest}.tar.gz",
            "digest": f"sha256:{digest}",
            "revision": f"main@sha1:{digest[:40]}",
            "lastUpdateTime": moment,
        }
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "observedGeneration": 1}
        status = {"artifact": artifact, "conditions": [{**ready, "lastTransitionTime": moment}]}
        found = self._get(f"{_SOURCES}/{NAMESPACE}")
        self._put(f"{_SOURCES}/{NAMESPACE}/status", {**found, "status": {**status, "observedGeneration": 1}})

    def applied(self, name: str) -> None:
        """Wait until a Kustomization is what the source offers now."""
        self._eventually(lambda: self._is_ready(name), 60, f"Flux applies {name}")

    def suspend(self, name: str, suspended: bool) -> None:
        """As `flux suspend` and `flux resume` do."""
        patch = json.dumps({"spec": {"suspend": suspended}})
        self._cluster.kubectl("-n", NAMESPACE, "patch", "kustomizations", name, "--type=merge", "-p", patch)

    def kick(self, name: str) -> None:
        """As `flux reconcile kustomization` does."""
        count = int(self._get(f"{_KUSTOMIZATIONS}/{name}")["metadata"].get("annotations", {}).get(_ASKED, "0"))
        self._cluster.kubectl(
            "-n", NAMESPACE, "annotate", "--overwrite", "kustomizations", name, f"{_ASKED}={count + 1}"
        )

    def _is_ready(self, name: str) -> bool:
        found, source = self._get(f"{_KUSTOMIZATIONS}/{name}"), self._get(f"{_SOURCES}/{NAMESPACE}")
        status, asked = found.get("status", {}), found["metadata"].get("annotations", {}).get(_ASKED)
        ready = {each["status"] for each in status.get("conditions", []) if each["type"] == "Ready"}
        return (
            ready == {"True"}
            and status.get("lastAppliedRevision") == source["status"]["artifact"]["revision"]
            and status.get("observedGeneration") == found["metadata"]["generation"]
            and status.get("lastHandledReconcileAt") == asked
        )

    def _free(self) -> None:
        """Its objects wait for a finalizer that is its own, and nobody takes off any more."""
        for each in self._get(_KUSTOMIZATIONS)["items"]:
            patch = json.dumps({"metadata": {"finalizers": []}})
            self._cluster.kubectl(
                "-n", NAMESPACE, "patch", "kustomizations", each["metadata"]["name"], "--type=merge", "-p", patch
            )

    def _get(self, path: str) -> dict[str, Any]:
        status, found = self._cluster.request("GET", path)
        assert status == 200, found
        answer: dict[str, Any] = found
        return answer

    def _put(self, path: str, body: Any) -> None:
        status, found = self._cluster.request("PUT", path, body)
        assert status == 200, found

    def _offering(self) -> type[http.server.BaseHTTPRequestHandler]:
        packed = self._packed

        class Offering(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                found = packed.get(self.path)
                self.send_response(404 if found is None else 200)
                self.send_header("Content-Length", str(len(found or b"")))
                self.end_headers()
                self.wfile.write(found or b"")

        return Offering


def _packed(directory: Path) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path in sorted(directory.rglob("*")):
            if path.is_file() and ".git" not in path.parts:
                archive.add(path, path.relative_to(directory))
    return made.getvalue()


def _definition(kind: str) -> dict[str, Any]:
    """Of what source-controller defines: kustomize-controller watches these."""
    plural = _SOURCES_OF[kind]
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_SOURCE_GROUP}"},
        "spec": {"group": _SOURCE_GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }
