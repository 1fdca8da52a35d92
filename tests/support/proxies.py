"""HAProxy and nginx with the configurations that docs/behind-a-proxy.md prints, between a client and a server here.

The programs are those on PATH, or HAPROXY_BINARY and NGINX_BINARY. nginx' stream module is compiled in, or stands in
NGINX_MODULES or Debian's folder.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from realclusters.processes import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "behind-a-proxy.md"
_MODULES = "/usr/lib/nginx/modules"


def program(name: str) -> str:
    """Skips the test, by name, where there is none."""
    found = os.environ.get(f"{name.upper()}_BINARY") or shutil.which(name)
    if not found:
        pytest.skip(f"needs {name}: put it on PATH, or set {name.upper()}_BINARY")
    return found


def printed(name: str, way: str) -> str:
    """The configuration in the page. `way`: L4 or L7."""
    section = PAGE.read_text().partition(f"({way})\n")[2].partition("\n## ")[0]
    [found] = re.findall(rf"```{name}\n(.*?)```", section, re.DOTALL)
    return str(found)


def _fitted(text: str, port: int, server: int, folder: Path) -> str:
    """With the ports and files that there are here, and nothing else."""
    text = re.sub(r"(bind|listen) :?443\b", rf"\1 127.0.0.1:{port}", text)
    return text.replace("127.0.0.1:6443", f"127.0.0.1:{server}").replace("/etc/treeplane/", f"{folder}/")


def _nginx(text: str, folder: Path) -> str:
    head = f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/error.log;\nevents {{}}\n"
    module = Path(os.environ.get("NGINX_MODULES", _MODULES)) / "ngx_stream_module.so"
    if text.startswith("stream") and module.exists():
        head = f"load_module {module};\n{head}"
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"  {kind}_temp_path {folder}/{kind};\n" for kind in kinds)
    return head + text.replace("http {\n", f"http {{\n  access_log off;\n{places}", 1)


@contextmanager
def proxy(name: str, way: str, server: int, folder: Path) -> Iterator[int]:
    """One that runs before the port `server`; the port that it listens on. For L7 `folder` has proxy.crt, proxy.key,
    proxy.pem and ca.crt."""
    command, port, file = program(name), free_ports(1)[0], folder / f"{name}.conf"
    text = _fitted(printed(name, way), port, server, folder)
    file.write_text(text if name == "haproxy" else _nginx(text, folder))
    words = [command, "-db", "-f", str(file)] if name == "haproxy" else [command, "-p", str(folder), "-c", str(file)]
    with (folder / f"{name}.log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
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
