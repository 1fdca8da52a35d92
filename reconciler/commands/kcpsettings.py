"""The tree of settings of `treeplane kcp start`: kcp's flags, as far as something is done for them here.

What becomes of them is kcp.py's; how a field is an option stands in settings.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from apiserver.options import Option, option


@dataclass(frozen=True)
class KcpStarting:
    """For `treeplane kcp start`."""

    root_directory: Path = option(
        told=Option(
            "Where all is kept: repository, store, keys, admin.kubeconfig, apiserver.crt and apiserver.key.",
            shown="`.kcp`",
            otherwise=lambda _: Path(".kcp").absolute(),
        )
    )
    bind_address: str = option(
        "0.0.0.0",  # noqa: S104 (as kcp)
        told=Option("The address to listen on.", metavar="ADDRESS", form="ip"),
    )
    secure_port: int = option(6443, told=Option("The port; 0 takes a free one.", least=0))
    kubeconfig_path: Path | None = option(
        None,
        told=Option("The administrators' kubeconfig, which is written.", shown="`ROOT-DIRECTORY/admin.kubeconfig`"),
    )
    kcp_tls_cert_file: Path | None = option(
        None,
        told=Option("A certificate to serve with, its chain behind it, in PEM.", name="--tls-cert-file", exists=True),
    )
    kcp_tls_private_key_file: Path | None = option(
        None,
        told=Option("The key of `--tls-cert-file`, in PEM.", name="--tls-private-key-file", exists=True),
    )
    kcp_token_auth_file: Path | None = option(
        None,
        told=Option("Static tokens, in kube-apiserver's CSV format.", name="--token-auth-file", exists=True),
    )
    kcp_client_ca_file: Path | None = option(
        None,
        told=Option(
            "Certificates of CAs whose clients are let in, besides the server's own.",
            name="--client-ca-file",
            exists=True,
        ),
    )
    shard_external_url: str = option(
        "",
        told=Option("How clients reach the server.", metavar="https://NAME[:PORT]", form="https"),
    )
    total_object_limit: int = option(
        0,
        told=Option(
            "How many objects a workspace may have, 0 for any; `core.kcp.io/max-total-objects` of one goes before.",
            name="--logical-cluster-total-object-limit",
            least=0,
        ),
    )
    home_creators: tuple[str, ...] = option(
        ("system:authenticated",),
        told=Option(
            "Groups whose users may have a home workspace, with commas between them. It counts when the root directory "
            "is made.",
            name="--home-workspaces-home-creator-groups",
            metavar="GROUPS",
            shown="`system:authenticated`",
            form="texts",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class KcpSettings:
    """The tree of `treeplane kcp start`."""

    KIND: ClassVar[str] = "KcpServerConfiguration"
    """Of the object that says them in a file."""

    starting: KcpStarting
