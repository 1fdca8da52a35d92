"""A real Kubernetes cluster in a folder: etcd, kube-apiserver and, if the programs are there, simulated nodes.

For tests and benchmarks. A cluster keeps its folder, ports and credentials over stop() and start(), so its kubeconfig
stays valid; pause() makes it hang, kill() makes it refuse connections. RBAC is real; the admin is a token of
`system:masters`. With controller-manager, scheduler and kwok, Deployments and Jobs become Available and Complete.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import signal
import ssl
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from . import workloads
from .binaries import Binaries
from .processes import Process, free_ports

TOKEN = "admin-token"
START_SECONDS = 240.0
"""Two busy cores take long over what is ready in fifteen seconds else."""
_POLL_SECONDS = 0.05


class ClusterError(Exception):
    """A cluster did not start; the text has the program's last words."""


class PortTaken(ClusterError):
    """Somebody took a port between choosing and using it."""


@dataclass(frozen=True, slots=True)
class Ports:
    etcd: int
    etcd_peer: int
    api: int


class RealCluster:
    """One cluster. `workloads=False` leaves out what runs Pods; `durable=True` makes etcd sync (for benchmarks)."""

    def __init__(
        self, name: str, folder: Path, binaries: Binaries, *, workloads: bool = True, durable: bool = False
    ) -> None:
        self.name = name
        self.folder = folder.resolve()
        self.binaries = binaries
        self.workloads = workloads and binaries.run_workloads
        self.durable = durable
        self._ports: Ports | None = None
        self._processes: list[Process] = []

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start, and return when it is ready (with workloads: when its node is). Raises ClusterError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_credentials()
        deadline = time.monotonic() + START_SECONDS
        while True:
            chosen = self._ports or Ports(*free_ports(3))
            try:
                self._start_control_plane(chosen, deadline)
                break
            except PortTaken:
                self.kill()
                if time.monotonic() > deadline:
                    raise
            except ClusterError:
                self.kill()
                raise
        self._ports = chosen
        self.kubeconfig_path.write_bytes(self.kubeconfig)
        self.kubeconfig_path.chmod(0o600)
        if self.workloads:
            self._start_workloads(deadline)

    def stop(self) -> None:
        """End everything, etcd last: without it kube-apiserver would linger for a minute and keep its port."""
        while self._processes:
            process = self._processes.pop()
            process.end(signal.SIGTERM if process.name == "etcd" else signal.SIGKILL)

    def kill(self) -> None:
        """End everything at once, as a power cut does. start() brings it back with the same address."""
        while self._processes:
            self._processes.pop().end(signal.SIGKILL)

    def pause(self) -> None:
        """Make it hang: connections are accepted by the kernel and never answered."""
        for process in reversed(self._processes):
            process.send(signal.SIGSTOP)

    def resume(self) -> None:
        for process in self._processes:
            process.send(signal.SIGCONT)

    def __enter__(self) -> RealCluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- use ----------------------------------------------------------------------------------------------------

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self._known_ports.api}"

    @property
    def pids(self) -> dict[str, int]:
        """The running programs by name."""
        return {process.name: process.pid for process in self._processes}

    @property
    def kubeconfig_path(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def kubeconfig(self) -> bytes:
        """The admin's kubeconfig; self-contained, so it can be put into a Secret. JSON, which is YAML too."""
        ca = base64.b64encode(self._certificate.read_bytes()).decode()
        cluster = {"server": self.server, "certificate-authority-data": ca}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": TOKEN}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": "admin"}}],
            "current-context": self.name,
        }
        return json.dumps(config, indent=1).encode()

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> str:
        """Run the kubectl that belongs to the cluster; its standard output."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig_path)}
        command = [self.binaries.kubectl, *arguments]
        result = subprocess.run(command, input=input, env=environment, capture_output=True, text=True, check=False)
        if check and result.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {result.stderr.strip()}")
        return result.stdout

    def request(self, method: str, path: str, body: Any = None, seconds: float = 10) -> tuple[int, Any]:
        """One API request as the admin: (HTTP status, decoded JSON or text). Raises OSError where nobody answers."""
        context = ssl.create_default_context(cafile=str(self._certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", self._known_ports.api, timeout=seconds, context=context)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(data) if is_json else data.decode()

    # -- starting -----------------------------------------------------------------------------------------------

    @property
    def _known_ports(self) -> Ports:
        if self._ports is None:
            raise ClusterError(f"cluster {self.name} was never started")
        return self._ports

    @property
    def _certificate(self) -> Path:
        """Self-signed by kube-apiserver at its first start: it is its own authority."""
        return self.folder / "certs" / "apiserver.crt"

    def _write_credentials(self) -> None:
        key = self.folder / "sa.key"
        if not key.exists():
            private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
            pem, traditional = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
            key.write_bytes(private.private_bytes(pem, traditional, serialization.NoEncryption()))
            key.chmod(0o600)
        token = self.folder / "token.csv"
        token.write_text(f"{TOKEN},admin,admin,system:masters\n")
        token.chmod(0o600)

    def _spawn(self, program: str, *arguments: str) -> Process:
        process = Process([self.binaries.path(program), *arguments], self.folder)
        self._processes.append(process)
        return process

    def _start_control_plane(self, ports: Ports, deadline: float) -> None:
        client = f"http://127.0.0.1:{ports.etcd}"
        self._spawn(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls=http://127.0.0.1:{ports.etcd_peer}",
            "--log-level=error",
            *([] if self.durable else ["--unsafe-no-fsync"]),
        )
        self._spawn(
            "kube-apiserver",
            f"--etcd-servers={client}",
            f"--secure-port={ports.api}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-key-file=sa.key",
            "--service-account-signing-key-file=sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--token-auth-file=token.csv",
            "--authorization-mode=RBAC",
            f"--cert-dir={self._certificate.parent}",
            # Without controller-manager nobody makes the `default` ServiceAccount that this plugin insists on.
            *([] if self.workloads else ["--disable-admission-plugins=ServiceAccount"]),
        )
        known, self._ports = self._ports, ports
        try:
            self._wait(lambda: self.request("GET", "/readyz", seconds=2) == (200, "ok"), deadline)
        except ClusterError:
            self._ports = known
            raise

    def _start_workloads(self, deadline: float) -> None:
        credentials = ("--service-account-private-key-file=sa.key", f"--root-ca-file={self._certificate}")
        for command in workloads.commands(self.binaries, self.kubeconfig_path, *credentials):
            self._spawn(*command)
        self._wait(self._can_run_pods, deadline)

    def _can_run_pods(self) -> bool:
        status, node = self.request("GET", "/api/v1/nodes/node-0")
        if status == 404:  # not after a restart; and one request that comes to nothing is not the end of it
            self.request("POST", "/api/v1/nodes", workloads.NODE)
        ready = status == 200 and workloads.ready(node)
        return ready and self.request("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200

    def _wait(self, condition: Callable[[], bool], deadline: float) -> None:
        while True:
            ended = [process for process in self._processes if process.ended()]
            if ended:
                words = "; ".join(f"{process.name} ended: {process.last_words()}" for process in ended)
                kind = PortTaken if "address already in use" in words else ClusterError
                raise kind(f"cluster {self.name}: {words}")
            try:
                if condition():
                    return
            except (OSError, http.client.HTTPException):
                pass  # not listening yet
            if time.monotonic() > deadline:
                words = "; ".join(f"{process.name}: {process.last_words(2)}" for process in self._processes)
                raise ClusterError(f"cluster {self.name} was not ready after {START_SECONDS:.0f} s: {words}")
            time.sleep(_POLL_SECONDS)


def start_all(*clusters: RealCluster) -> None:
    """Start several at the same time; if one fails, all are ended and its error is raised."""
    with ThreadPoolExecutor(len(clusters)) as pool:
        futures = [pool.submit(cluster.start) for cluster in clusters]
    try:
        for future in futures:
            future.result()
    except BaseException:
        for cluster in clusters:
            cluster.kill()
        raise
