"""What all processes have to know, and what an API worker has to know beyond that.

A field with an `option` is an option of `treeplane up`: the fields of `Common` reach every process, those of `Serving`
each API worker (reconciler/commands/settings has the rest of the tree). Other fields are what `up` finds out. The
worker gets both as JSON (launch.py). All paths are absolute or relative to the working directory, which workers share
with their parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from apiserver import options
from apiserver.options import Option, option

_ANY_ADDRESS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def listens_on_all(host: str) -> bool:
    """Whether `host` stands for every address of the machine."""
    return host in _ANY_ADDRESS


# Groups are put together by inheritance, which slots would forbid.
@dataclass(frozen=True)
class Common:
    """For all processes."""

    data_dir: Path = option(
        told=Option(
            "Caches, keys and, for a directory, the hosted repository.",
            shown="`.treeplane`",
            otherwise=lambda _: Path(".treeplane").absolute(),
        )
    )
    keys_dir: Path = option(
        told=Option(
            "CA, certificates, tokens",
            document="CA, certificates, tokens: the one thing to back up.",
            name="--keys",
            shown="`DATA-DIR/keys`",
            otherwise=lambda given: given["data_dir"] / "keys",
        )
    )
    branch: str = option("main", told=Option("The branch that is served."))
    path: str = option(
        "",
        told=Option(
            "The folder of the repository in which the fleet stands.",
            document="The folder of the repository in which the fleet stands, as a path from its top; see "
            "[repositories](repositories.md#a-folder-of-a-repository).",
            shown="the top",
            metavar="FOLDER",
            form="folder",
        ),
    )
    most_objects: int = option(
        0,
        told=Option(
            "How many objects a workspace may have, 0 for any.",
            document="How many objects a workspace may have, Events aside, 0 for any: requests that make one too many "
            "get 403, a commit that declares too many holds the workspace. `core.kcp.io/max-total-objects` of a "
            "workspace goes before; root has no limit but that.",
            name="--max-total-objects",
            least=0,
        ),
    )
    sync_writes: bool = option(
        True, told=Option("Do not wait for the disk before a write is answered.", name="--no-sync", hidden=True)
    )


@dataclass(frozen=True)
class Serving:
    """For each API process: bounds hold in each of them."""

    external_url: str = option(
        "",
        told=Option(
            "How clients reach the server",
            document="How clients reach the server: in the kubeconfig that is written, in `Workspace.spec.URL`, in the "
            "line to clone with, in the issuer's document. Nothing is ever taken from what a request calls the server.",
            shown="`https://HOST:PORT` of `--listen`",
            metavar="https://NAME[:PORT]",
            form="https",
        ),
    )
    tls_cert_file: Path | None = option(
        None,
        told=Option(
            "A certificate to serve with, its chain behind it, in PEM; read again when it changes.",
            document="A certificate to serve with, in PEM, with the others behind it that clients need to check it. It "
            "goes with `--tls-private-key-file`; both are read again when they change. Names that it does not have and "
            "the server's own has (`localhost`, addresses of the machine) are served with that. See "
            "[certificates](certificates.md).",
            exists=True,
        ),
    )
    tls_private_key_file: Path | None = option(
        None,
        told=Option("The key of `--tls-cert-file`, in PEM, without a password.", exists=True),
    )
    token_auth_file: Path | None = option(
        None, told=Option("Static tokens, in kube-apiserver's CSV format.", exists=True)
    )
    client_ca_file: Path | None = option(
        None,
        told=Option(
            "Certificates of CAs whose clients are let in, besides the fleet's own.",
            document="Certificates of CAs whose clients are let in, besides the fleet's own: a client's common name is "
            "the user, its organizations are the groups. Who signs there may be anybody here, `system:masters` too.",
            name="--client-ca-file",
            exists=True,
        ),
    )
    webhook_networks: tuple[str, ...] = option(
        (),
        told=Option(
            "A network (10.0.0.0/8) where webhooks may be called, besides the public internet. Repeatable.",
            name="--webhook-network",
            form="network",
        ),
    )
    webhook_secret_file: Path | None = option(
        None,
        told=Option(
            "The secret that a forge signs with what its webhook delivers to /webhooks/push; without it there is none.",
            document="The secret that a forge signs with what its webhook delivers to `/webhooks/push`, so that a push "
            "there is seen at once; without it there is no such path. It is read again when it changes. See "
            "[remotes](remotes.md#a-webhook).",
            exists=True,
        ),
    )
    anonymous: bool = option(
        False,
        told=Option("Let requests without credentials in, as system:anonymous.", name="--anonymous-auth"),
    )
    disabled_admission: tuple[str, ...] = option(
        (),
        told=Option(
            "Admission plugins to do without, by kube-apiserver's names: {choices}.",
            name="--disable-admission-plugins",
            metavar="NAMES",
            form="plugins",
        ),
    )
    max_requests: int = option(
        600,
        told=Option(
            "Requests that one API process answers at a time; more get 429. Watches and system:masters do not count.",
            document="Requests that one API process answers at a time; more get 429 with Retry-After. Watches wait "
            "rather than work and do not count; nor does `system:masters`, so that an administrator gets in when "
            "everybody else is too many.",
            least=1,
        ),
    )
    max_requests_per_user: int = option(200, told=Option("How many of them may be one user's.", least=1))
    request_seconds: int = option(
        60,
        told=Option(
            "How long a request other than a watch may take; then it gets 504.",
            document="How long a request other than a watch may take; then it gets 504. A client may ask for less with "
            "`timeout`.",
            unit="s",
            least=1,
        ),
    )
    shutdown_seconds: int = option(
        5,
        told=Option(
            "How long a stopping API process waits for requests under way, after it has ended the watches.",
            unit="s",
            least=0,
        ),
    )
    max_push_mib: int = option(
        100,
        told=Option(
            "How large a push to the hosted repository may be, in MiB.",
            document="How large a push to the hosted repository may be, as git packs it. No object in it may be larger "
            "than that (or 128 MiB, if that is more) once it is unpacked, and unpacking it may take 120 seconds of "
            "CPU.",
            unit="MiB",
            least=1,
        ),
    )
    proxy_networks: tuple[str, ...] = option(
        (),
        told=Option(
            "A network (10.0.0.5/32) whose connections say by the PROXY protocol for whom they come. Repeatable.",
            document="A network (`10.0.0.5/32`, repeatable) of proxies that pass connections on as they are. A "
            "connection from there has to begin with a header of the PROXY protocol, version 1 or 2, and counts as one "
            "of the address that it names. From anywhere else such a header is no TLS and ends the connection. See "
            "[behind a proxy](behind-a-proxy.md).",
            name="--proxy-protocol-network",
            metavar="CIDR",
            form="network",
        ),
    )
    max_connections_per_address: int = option(
        1000,
        told=Option(
            "Connections that one API process takes from one address; more get 429 or are closed. 0: no bound.",
            document="Connections that one API process takes from one IPv4 address or IPv6 /64; 0 is no bound. Sixteen "
            "more are told so with 429, further ones are closed as they come. Watches of clients without HTTP/2 are a "
            "connection each: raise it for clients that come through one proxy.",
            least=0,
        ),
    )
    head_seconds: float = option(
        30,
        told=Option(
            "How long a client may take for the handshake of TLS, and for the head of a request.",
            document="How long a client may take for the handshake of TLS, and for the head of a request from its "
            "first byte to its last; then it gets 408.",
            unit="s",
            least=1,
            whole=True,
        ),
    )
    # Longer than clients keep theirs (Go: 90 s from the last answer), so that they close first.
    idle_seconds: int = option(90, told=Option("How long a connection is kept for another request.", unit="s", least=1))
    stall_seconds: float = option(
        60,
        told=Option(
            "How long a client may neither send of what it sends nor take of what it is sent.",
            document="How long a client may neither send of what it sends nor take of what it is sent; then its "
            "connection ends, with all that runs for it.",
            unit="s",
            least=1,
            whole=True,
        ),
    )


@dataclass(frozen=True)
class ServerSettings(Serving, Common):
    """Of one API worker. The data directory holds `store/`, `targets/`, `plugins/` and
    `push.sock`."""

    host: str = "127.0.0.1"
    """The address that the listening socket is bound to."""

    port: int = 6443
    """Its port; 0 only before the socket is bound."""

    service_account_issuer: str = "https://kcp.default.svc"
    """What ServiceAccount tokens name as their issuer, and the audience of those that ask for none."""

    git_dir: Path | None = None
    """The bare repository that is served at /git/fleet.git; None: none is hosted."""

    external_authority: Path | None = None
    """The file of `--external-ca-file`, where it is one: its certificates' ends are told of."""

    git_concurrency: int = 8
    """How many git subprocesses one worker runs at a time; further requests wait."""

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

    @property
    def plugin_file(self) -> Path:
        """kubectl's plugin, which is handed out; `up` writes it."""
        return self.data_dir / "plugins" / "kubectl-ws"

    def to_json(self) -> str:
        return options.to_json(self)

    @staticmethod
    def from_json(text: str) -> ServerSettings:
        """Raises ValueError on a name that is not a setting."""
        return options.from_json(ServerSettings, text)
