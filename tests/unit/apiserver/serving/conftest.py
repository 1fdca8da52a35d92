"""A server with TLS, a store and a stand-in for the Kubernetes API, in a thread; and a git that talks to it."""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from support.ground import Ground

from apiserver.app import App
from apiserver.auth.authn import Authenticator
from apiserver.auth.pki import Keys, ensure_keys, issue_client
from apiserver.auth.rbac import Authorizer
from apiserver.connections import Connections
from apiserver.endpoints.githooks import install_hooks
from apiserver.launch import listen
from apiserver.model.keys import Key
from apiserver.settings import ServerSettings
from apiserver.storage.protocol import Put, Store
from apiserver.stores import open_main_store
from apiserver.worker import WorkerServer, server

RBAC = "rbac.authorization.k8s.io"


class Running(NamedTuple):
    """`git(folder, *arguments, user=…)` runs git as that certificate's user and returns the finished process."""

    settings: ServerSettings
    keys: Keys
    store: Store
    git: Callable[..., subprocess.CompletedProcess[str]]
    connections: Connections
    worker: WorkerServer

    @property
    def url(self) -> str:
        return self.settings.url

    @property
    def repository(self) -> str:
        return f"{self.url}/git/fleet.git"

    def hurry(self, **seconds: Any) -> None:
        """From now on clients have so long (`head_seconds` and the like), those that are there already, too: a test
        that is slow to come as far as it wants to be is not cut off on its way."""
        self.connections.settings = replace(self.settings, **seconds)

    def allow(self, user: str, verb: str) -> None:
        """`verb` on the repository for `user`, with access to the workspace root."""
        rules = [{"verbs": ["access"], "nonResourceURLs": ["/"]}, {"verbs": [verb], "nonResourceURLs": ["/git/*"]}]
        name = f"{user}-{verb}"
        role = {"metadata": {"name": name}, "rules": rules}
        subjects = [{"kind": "User", "name": user}]
        binding = {"metadata": {"name": name}, "roleRef": {"kind": "ClusterRole", "name": name}, "subjects": subjects}
        self.store.write(
            Put(Key(f"clusterroles.{RBAC}", "root", "", name), orjson.dumps(role)),
            Put(Key(f"clusterrolebindings.{RBAC}", "root", "", name), orjson.dumps(binding)),
        ).result(10)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """In place of the Kubernetes API: says what it was asked and by whom."""
    peer = scope["extensions"]["tls"]
    tls = {"user": peer.user, "groups": peer.groups} if peer else None
    body = orjson.dumps({"path": scope["path"], "tls": tls})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def clean_git(
    folder: Path,
    *arguments: str,
    settings: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
) -> Any:
    """git without the settings of this machine."""
    found = {"user.name": "t", "user.email": "t@example.org", "init.defaultBranch": "main", **(settings or {})}
    pairs = [part for key, value in found.items() for part in ("-c", f"{key}={value}")]
    clean = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
        **(environment or {}),
    }
    command = ["git", *pairs, *arguments]
    return subprocess.run(
        command, cwd=folder, env=clean, capture_output=True, errors="surrogateescape", timeout=60, check=False
    )


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """What fleets of two tenants are copied from."""
    return Ground(tmp_path_factory.mktemp("ground"))


@pytest.fixture
def git() -> Callable[..., Any]:
    """`git(folder, *arguments)` without a server."""
    return clean_git


@pytest.fixture
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Running]:
    """`@pytest.mark.parametrize("running", [{"stall_seconds": 1}], indirect=True)` gives it other settings; `app` among
    them is what stands in for the Kubernetes API, `webhook` has the secret of one in a file `webhook-secret`, which the
    test writes."""
    data = tmp_path / "data"
    keys = ensure_keys(data / "keys")
    issue_client(keys.directory, "bob", "bob", ["devs"])
    git_dir = tmp_path / "fleet.git"
    assert clean_git(tmp_path, "init", "--bare", str(git_dir)).returncode == 0
    install_hooks(git_dir, "main", "treeplane/status")
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("bobs-token,bob,1\n")
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    more: dict[str, Any] = {"sync_writes": False, **getattr(request, "param", {})}
    kubernetes = more.pop("app", echo)
    if more.pop("webhook", False):
        more["webhook_secret_file"] = tmp_path / "webhook-secret"
    settings = ServerSettings(data, keys.directory, port=port, git_dir=git_dir, token_auth_file=tokens, **more)
    store = open_main_store(settings)
    authenticator, authorizer = Authenticator(tokens), Authorizer(store)
    app = App(settings, store, authenticator, authorizer, kubernetes)
    worker = server(app, settings, lambda: None)
    thread = threading.Thread(target=worker.run, args=([listener],))
    thread.start()

    def git(folder: Path, *arguments: str, user: str = "admin", environment: dict[str, str] | None = None) -> Any:
        return clean_git(folder, *arguments, settings=credentials(keys, user), environment=environment)

    yield Running(settings, keys, store, git, app.connections, worker)
    worker.should_exit = True
    thread.join(30)
    store.close()


def credentials(keys: Keys, user: str) -> dict[str, str]:
    """Settings with which git comes in as `user`, or as nobody."""
    tls = {"http.sslCAInfo": str(keys.ca)}
    if user:
        pair = keys.pair(user)
        tls |= {"http.sslCert": str(pair.certificate), "http.sslKey": str(pair.key)}
    return tls
