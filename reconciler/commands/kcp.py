"""`treeplane kcp start`: a server for programs and people that know kcp, under kcp's flags.

It is `treeplane up` on a fleet that is made in the root directory the first time: what is written through the API goes
to the store, and everybody may do in root what kcp grants them there. A repository is in it all the same: whoever wants
to declare something clones it and pushes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click
import yaml

from reconciler.commands import options
from reconciler.commands.failure import Failure
from reconciler.commands.kcpsettings import KcpSettings, KcpStarting
from reconciler.commands.settings import Address, UpSettings
from reconciler.commands.up import up

_FLEET = """\
# What is declared of this server. What is made through the API is in the store, and not here.
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: kcp}
spec: {writes: Store, rootAccess: Authenticated}
"""
_ROLE = "home-creators"
_RBAC = "rbac.authorization.k8s.io"


def start(settings: KcpSettings, others: Sequence[str]) -> None:
    """Returns after a clean stop. `others`: what was typed besides. Raises Failure, and UsageError for what is no
    flag."""
    kcp = settings.starting
    for line in _ignored(others):
        click.echo(line)
    root = kcp.root_directory
    directory = root / "fleet"
    for line in _written(directory, kcp.home_creators):
        click.echo(line)
    up(_as_up(kcp, directory))


def _as_up(kcp: KcpStarting, directory: Path) -> UpSettings:
    """All that is not kcp's to say is as it is for whoever types `treeplane up` alone."""
    root = kcp.root_directory
    made = options.settings(
        UpSettings,
        options.nothing(UpSettings)
        | {
            "repository": str(directory),
            "listen": Address(kcp.bind_address, kcp.secure_port),
            "kubeconfig": kcp.kubeconfig_path or root / "admin.kubeconfig",
            "data_dir": root,
            "external_url": kcp.shard_external_url,
            "tls_cert_file": kcp.kcp_tls_cert_file,
            "tls_private_key_file": kcp.kcp_tls_private_key_file,
            "token_auth_file": kcp.kcp_token_auth_file,
            "client_ca_file": kcp.kcp_client_ca_file,
            "most_objects": kcp.total_object_limit,
        },
    )
    listen = f"{kcp.bind_address}:{kcp.secure_port}"
    command = (sys.argv[0], "up", "--data-dir", str(root), "--listen", listen)
    return replace(made, starting=replace(made.starting, serving_files=root / "apiserver", command=command))


def _ignored(others: Sequence[str]) -> Iterator[str]:
    """A line for flags that nothing is done for. Raises UsageError for a word that belongs to none."""
    if others and not others[0].startswith("-"):
        raise click.UsageError(f"unexpected argument: {others[0]}")
    names = [word.partition("=")[0] for word in others if word.startswith("-") and word != "-"]
    if names:
        yield f"not known here, and ignored: {', '.join(dict.fromkeys(names))}"


def _written(directory: Path, creators: Sequence[str]) -> Iterator[str]:
    """Makes the fleet's files where there are none yet; says so where one stands that is not as it would be now."""
    files = {"treeplane.yaml": _FLEET, "workspaces/root/home-creators.yaml": _home_creators(creators)}
    for name, text in files.items():
        file = directory / name
        try:
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
            elif file.read_text() != text:
                yield f"{file} is as it was made or changed before: what it says counts, not the flags"
        except OSError as error:
            raise Failure(f"{file}: {error.strerror}") from error


def _home_creators(groups: Sequence[str]) -> str:
    """Who may have a home made: whoever may create the Workspace ~ in root."""
    rule = {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspaces"], "resourceNames": ["~"], "verbs": ["create"]}
    head = {"apiVersion": f"{_RBAC}/v1", "metadata": {"name": _ROLE}}
    subjects = [{"kind": "Group", "apiGroup": _RBAC, "name": group} for group in groups]
    reference = {"kind": "ClusterRole", "apiGroup": _RBAC, "name": _ROLE}
    objects = (
        {**head, "kind": "ClusterRole", "rules": [rule]},
        {**head, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": subjects},
    )
    return yaml.safe_dump_all(objects, sort_keys=True)
