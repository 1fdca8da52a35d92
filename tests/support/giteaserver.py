"""A real Gitea on loopback, with its users and their tokens, and as much of its API as tests set the scene with."""

from __future__ import annotations

import base64
import getpass
import json
import os
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from realclusters.processes import Process, free_ports

from apiserver.auth.keys import Keys

_SETTINGS = """
RUN_USER = {user}
RUN_MODE = prod
WORK_PATH = {folder}
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = {port}
ROOT_URL = {url}/
{secured}
STATIC_ROOT_PATH = {static}
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = {folder}/gitea.db
[security]
INSTALL_LOCK = true
[service]
DISABLE_REGISTRATION = true
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
LEVEL = Warn
"""


_SECURED = """
PROTOCOL = https
CERT_FILE = {pair.certificate}
KEY_FILE = {pair.key}
"""


class GiteaServer:
    """`url`: where it is, once it was started. `keys`: it speaks TLS with the server's; without them it does not."""

    def __init__(self, program: Path, folder: Path, keys: Keys | None = None) -> None:
        self._program, self._folder, self._keys = program, folder, keys
        self._context = ssl.create_default_context(cafile=keys.ca) if keys is not None else None
        self._process: Process | None = None
        self.url = ""

    def start(self, eventually: Callable[..., str]) -> None:
        """Another process may take the port before Gitea does: then it ends, and another port is tried."""
        for _ in range(3):
            [port] = free_ports(1)
            self._settle(port)
            self._process = Process([*self._command, "web"], self._folder, self._environment)
            if eventually(self._state, 60, "Gitea answers") == "up":
                return
        raise AssertionError(self._process.last_words() if self._process else "")

    def stop(self) -> None:
        if self._process is not None:
            self._process.end(signal.SIGTERM)

    def user(self, name: str, *, admin: bool = False, password: str = "") -> None:
        words = ["--username", name, "--email", f"{name}@example.org"]
        words += ["--password", password] if password else ["--random-password"]
        self._admin("user", "create", *words, "--must-change-password=false", *(["--admin"] if admin else []))

    def token(self, user: str, scopes: str) -> str:
        words = ["--username", user, "--token-name", scopes, "--scopes", scopes, "--raw"]
        return self._admin("user", "generate-access-token", *words).splitlines()[-1]

    def ask(self, token: str, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, method=method)
        request.add_header("Content-Type", "application/json")
        request.add_header("Authorization", f"token {token}")
        with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
            return json.loads(answer.read() or b"null")

    def pull_request(self, token: str, repository: str, file: str) -> int:
        """Of a new branch with a new file; its number."""
        content = base64.b64encode(b"new\n").decode()
        branch = {"content": content, "message": "Add a file", "branch": "main", "new_branch": f"add-{file}"}
        self.ask(token, "POST", f"/repos/{repository}/contents/{file}", branch)
        pull = {"head": f"add-{file}", "base": "main", "title": "Add a file"}
        return int(self.ask(token, "POST", f"/repos/{repository}/pulls", pull)["number"])

    @property
    def _command(self) -> list[str]:
        return [str(self._program), "--config", str(self._folder / "app.ini")]

    @property
    def _environment(self) -> dict[str, str]:
        # It refuses to be root otherwise, as who runs tests may be.
        return {**os.environ, "HOME": str(self._folder), "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT": "true"}

    def _settle(self, port: int) -> None:
        self.url = f"{'https' if self._keys else 'http'}://127.0.0.1:{port}"
        static, secured = self._program.parent, _SECURED.format(pair=self._keys.server) if self._keys else ""
        text = _SETTINGS.format(
            user=getpass.getuser(), folder=self._folder, port=port, url=self.url, static=static, secured=secured
        )
        (self._folder / "app.ini").write_text(text)

    def _state(self) -> str:
        if self._process is None or self._process.ended():
            return "ended"
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/version", timeout=30, context=self._context):
                return "up"
        except OSError:
            return ""

    def _admin(self, *words: str) -> str:
        command = [*self._command, "admin", *words]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout
