"""HAProxy and nginx with the configurations that docs/behind-a-proxy.md prints, between a client and a server here.

realclusters/proxybinaries has the programs. nginx' stream module is compiled in, or stands in its folder of modules.
"""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from realclusters.binaries import Unavailable
from realclusters.processes import free_ports
from realclusters.proxybinaries import ProxyProgram, find
from support.authorities import Authority, key_pem, pem

PAGE = Path(__file__).parents[2] / "docs" / "behind-a-proxy.md"


def program(name: str) -> ProxyProgram:
    """Skips the test, by name, where there is none."""
    try:
        return find(name)
    except Unavailable as error:
        pytest.skip(f"no {name}: {error}")


def printed(name: str, way: str) -> str:
    """The configuration in the page. `way`: L4 or L7."""
    section = PAGE.read_text().partition(f"({way})\n")[2].partition("\n## ")[0]
    [found] = re.findall(rf"```{name}\n(.*?)```", section, re.DOTALL)
    return str(found)


def _fitted(text: str, port: int, server: int, folder: Path) -> str:
    """With the ports and files that there are here, and nothing else."""
    text = re.sub(r"(bind|listen) :?443\b", rf"\1 127.0.0.1:{port}", text)
    return text.replace("127.0.0.1:6443", f"127.0.0.1:{server}").replace("/etc/treeplane/", f"{folder}/")


def _nginx(text: str, folder: Path, modules: Path) -> str:
    head = f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
    module = modules / "ngx_stream_module.so"
    if text.startswith("stream") and module.exists():
        head = f"load_module {module};\n{head}"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    return head + text.replace("http {\n", f"http {{\n  access_log off;\n{places}", 1)


def of_proxy(folder: Path, fleet_ca: bytes) -> bytes:
    """A certificate of a proxy that ends TLS, of a CA of its own, and what it checks the server by; that CA."""
    theirs = Authority("the proxy's")
    issued = theirs.issue("localhost", "127.0.0.1")
    (folder / "ca.crt").write_bytes(fleet_ca)
    (folder / "proxy.crt").write_bytes(pem(*issued.chain))
    (folder / "proxy.key").write_bytes(key_pem(issued.key))
    (folder / "proxy.pem").write_bytes(pem(*issued.chain) + key_pem(issued.key))
    (folder / "proxy-ca.crt").write_bytes(pem(theirs.certificate))
    return pem(theirs.certificate)


@contextmanager
def proxy(name: str, way: str, server: int, folder: Path, port: int = 0) -> Iterator[int]:
    """One that runs before the port `server`; the port that it listens on (0: any). For L7 `folder` has what `of_proxy`
    puts there."""
    found, port, file = program(name), port or free_ports(1)[0], folder / f"{name}.conf"
    text = _fitted(printed(name, way), port, server, folder)
    file.write_text(text if name == "haproxy" else _nginx(text, folder, found.modules))
    command, started = str(found.path), found.environment()
    words = [command, "-db", "-f", str(file)] if name == "haproxy" else [command, "-p", str(folder), "-c", str(file)]
    with (
        (folder / f"{name}.log").open("wb") as log,
        subprocess.Popen(words, stdout=log, stderr=log, env=started) as process,
    ):
        try:
            _listening(port, process, folder / f"{name}.log")
            yield port
        finally:
            process.kill()


def _listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        if process.poll() is not None:
            pytest.fail(f"it ended: {log.read_text()[-2000:]}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            continue
        return
