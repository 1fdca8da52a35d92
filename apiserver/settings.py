"""What one API worker has to know. Written by `up`, handed to each worker as JSON (see launch.py)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

_ANY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def listens_on_all(host: str) -> bool:
    """Whether `host` stands for every address of the machine."""
    return host in _ANY_ADDRESS


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """All paths are absolute or relative to the working directory, which workers share with their parent."""

    data_dir: Path
    """The data directory: holds `store/`, `targets/` and `push.sock`."""

    keys_dir: Path
    """CA, certificates and tokens (see auth/pki.py)."""

    host: str = "127.0.0.1"
    """The address that the listening socket is bound to."""

    port: int = 6443
    """Its port; 0 only before the socket is bound."""

    external_url: str = ""
    """How clients reach the server, without a trailing slash; "": https://host:port."""

    token_auth_file: Path | None = None
    """Static tokens in kube-apiserver's CSV format: token,user,uid,"group1,group2"."""

    service_account_issuer: str = "https://kcp.default.svc"
    """What ServiceAccount tokens name as their issuer, and the audience of those that ask for none."""

    anonymous: bool = False
    """Whether requests without credentials are let in, as user system:anonymous in group system:unauthenticated."""

    disabled_admission: tuple[str, ...] = ()
    """Names of admission plugins to do without."""

    max_requests: int = 600
    """How many requests one worker answers at a time; more get 429. Watches and system:masters do not count."""

    max_requests_per_user: int = 200
    """How many of them may be one user's."""

    request_seconds: int = 60
    """How long a request other than a watch may take; then it gets 504."""

    webhook_networks: tuple[str, ...] = ()
    """Networks (10.0.0.0/8) in which webhooks that tenants name may be called, besides the public internet."""

    max_connections_per_address: int = 1000
    """How many connections one worker takes from one address; 0: as many as come."""

    head_seconds: float = 30
    """How long a client may take for the handshake of TLS, and for the head of a request."""

    idle_seconds: int = 90
    """How long a connection is kept for another request. Longer than clients keep theirs (Go: 90 s from the last
    answer), so that they close first."""

    git_dir: Path | None = None
    """The bare repository that is served at /git/fleet.git; None: none is hosted."""

    branch: str = "main"
    """The branch that is served."""

    git_concurrency: int = 8
    """How many git subprocesses one worker runs at a time; further requests wait."""

    max_push_mib: int = 100
    """How large a push may be."""

    stall_seconds: float = 60
    """How long a client may neither send of what it sends nor take of what it is sent."""

    shutdown_seconds: int = 5
    """How long a stopping worker waits for requests that are under way."""

    sync_writes: bool = True
    """Whether a write is on disk before it is answered. Only tests turn it off."""

    log_level: str = "warning"
    """Of uvicorn: critical, error, warning, info, debug."""

    @property
    def url(self) -> str:
        """The URL of the server for clients, without a trailing slash."""
        return self.external_url.rstrip("/") or self.local_url

    @property
    def local_url(self) -> str:
        """The URL of the server on this machine, whatever others call it."""
        host = _ANY_ADDRESS.get(self.host, self.host)
        return f"https://[{host}]:{self.port}" if ":" in host else f"https://{host}:{self.port}"

    @property
    def store_dir(self) -> Path:
        return self.data_dir / "store"

    @property
    def targets_dir(self) -> Path:
        """Stores of embedded sync targets, one directory each."""
        return self.data_dir / "targets"

    def to_json(self) -> str:
        return json.dumps({k: str(v) if isinstance(v, Path) else v for k, v in asdict(self).items()})

    @staticmethod
    def from_json(text: str) -> ServerSettings:
        """Raises ValueError on a name that is not a setting: parent and worker are then of different versions."""
        found = json.loads(text)
        unknown = set(found) - {f.name for f in fields(ServerSettings)}
        if unknown:
            raise ValueError(f"unknown settings: {', '.join(sorted(unknown))}")
        for name in ("data_dir", "keys_dir", "token_auth_file", "git_dir"):
            if found.get(name) is not None:
                found[name] = Path(found[name])
        for name in ("disabled_admission", "webhook_networks"):
            found[name] = tuple(found.get(name) or ())
        return ServerSettings(**found)
