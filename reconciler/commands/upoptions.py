"""The options of `treeplane up`, and the settings that they come to. docs/settings.md lists them; a test compares."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from functools import reduce
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple

import click

from apiserver.admission.completion import PLUGINS
from apiserver.model import paths
from reconciler.commands import addresses
from reconciler.commands.up import Bounds, UpSettings, default_workers


class Address(NamedTuple):
    host: str
    port: int


def _address(_context: click.Context, _option: click.Parameter, text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.BadParameter(f"{text!r} is not HOST:PORT")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


def _external_url(_context: click.Context, _option: click.Parameter, text: str) -> str:
    try:
        return addresses.external_url(text) if text else ""
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _names(_context: click.Context, _option: click.Parameter, found: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(addresses.subject_name(text) for text in found)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _commit(_context: click.Context, _option: click.Parameter, text: str) -> str:
    if text and not re.fullmatch(r"[0-9a-f]{7,64}", text):
        raise click.BadParameter(f"{text!r} is not the id of a commit, nor seven digits of it or more")
    return text


def _networks(_context: click.Context, _option: click.Parameter, found: tuple[str, ...]) -> tuple[str, ...]:
    for text in found:
        try:
            ip_network(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from None
    return found


def _workspaces(_context: click.Context, _option: click.Parameter, found: tuple[str, ...]) -> tuple[str, ...]:
    wrong = [path for path in found if not paths.is_path(path)]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not the path of a workspace, like root:infra:locations")
    return found


def _plugins(_context: click.Context, _option: click.Parameter, text: str) -> tuple[str, ...]:
    names = tuple(filter(None, text.split(",")))
    unknown = [name for name in names if name not in PLUGINS]
    if unknown:
        raise click.BadParameter(f"no such plugin: {', '.join(unknown)}")
    return names


def _absolute(_context: click.Context, _option: click.Parameter, path: Path | None) -> Path | None:
    return path.absolute() if path is not None else None


_OPTIONS = (
    click.argument("repository", required=False, default=""),
    click.option(
        "--data-dir",
        type=click.Path(path_type=Path),
        callback=_absolute,
        default=Path(".treeplane"),
        show_default=True,
        help="Caches, keys and, for a directory, the hosted repository.",
    ),
    click.option(
        "--listen",
        callback=_address,
        default="127.0.0.1:6443",
        show_default=True,
        help="HOST:PORT; port 0 takes a free one.",
    ),
    click.option(
        "--external-url",
        metavar="https://NAME[:PORT]",
        callback=_external_url,
        default="",
        help="How clients reach the server  [default: https://HOST:PORT of --listen]",
    ),
    click.option(
        "--tls-san",
        "tls_sans",
        metavar="NAME",
        multiple=True,
        callback=_names,
        help="A DNS name or address that the server's certificate names, too. Repeatable.",
    ),
    click.option("--certificate-seconds", type=float, default=60.0, hidden=True),
    click.option(
        "--workers", type=click.IntRange(1), default=default_workers, help="API processes  [default: cores - 1]"
    ),
    click.option(
        "--roles",
        type=click.Choice(["auto", "together", "apart"]),
        default="auto",
        show_default=True,
        help="Whether one process loads commits and does all the rest, or two; auto: two for a large fleet.",
    ),
    click.option("--branch", default="main", show_default=True, help="The branch that is served."),
    click.option(
        "--take-over",
        default="",
        metavar="HOLDER",
        help="Take the fleet over from the server that is called so, if that is the one that holds it.",
    ),
    click.option(
        "--new-identities",
        default="",
        metavar="COMMIT",
        help="Begin with new UIDs at this head of the branch, although the fleet was recorded before.",
    ),
    click.option(
        "--poll",
        type=click.FloatRange(min=1),
        default=10.0,
        show_default=True,
        metavar="SECONDS",
        help="How often a repository that is a URL is looked at; one that does not answer at least every minute.",
    ),
    click.option(
        "--take-head",
        metavar="COMMIT",
        callback=_commit,
        default="",
        help="In an emergency: follow the branch to this head of it, although it does not contain what is served.",
    ),
    click.option(
        "--keys",
        "keys_dir",
        type=click.Path(path_type=Path),
        callback=_absolute,
        help="CA, certificates, tokens  [default: DATA-DIR/keys]",
    ),
    click.option(
        "--token-auth-file",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        callback=_absolute,
        help="Static tokens, in kube-apiserver's CSV format.",
    ),
    click.option(
        "--webhook-network",
        "webhook_networks",
        multiple=True,
        callback=_networks,
        help="A network (10.0.0.0/8) where webhooks may be called, besides the public internet. Repeatable.",
    ),
    click.option(
        "--trust-targets",
        "trusted_targets",
        multiple=True,
        metavar="WORKSPACE",
        callback=_workspaces,
        help="A workspace whose sync targets may be at any address, not only on the public internet. Repeatable.",
    ),
    click.option(
        "--anonymous-auth", "anonymous", is_flag=True, help="Let requests without credentials in, as system:anonymous."
    ),
    click.option(
        "--disable-admission-plugins",
        "disabled_admission",
        metavar="NAMES",
        default="",
        callback=_plugins,
        help=f"Admission plugins to do without, by kube-apiserver's names: {', '.join(sorted(PLUGINS))}.",
    ),
    click.option("--heartbeat-seconds", "heartbeat", type=float, default=20.0, hidden=True),
    click.option("--threshold-seconds", "threshold", type=float, default=60.0, hidden=True),
    click.option(
        "--tolerance-seconds",
        "tolerance",
        type=float,
        default=300.0,
        show_default=True,
        help="How long a sync target may be not Ready before its placements move.",
    ),
    click.option(
        "--history-seconds",
        "history",
        type=click.FloatRange(min=0),
        default=0.0,
        help="Forget past states after this time, up to twice as long; otherwise they stay while there is room.",
    ),
    click.option(
        "--event-seconds",
        "events",
        type=click.FloatRange(min=1),
        default=3600.0,
        show_default=True,
        help="How long an Event stays after it was last written.",
    ),
    click.option(
        "--max-requests",
        type=click.IntRange(1),
        default=600,
        show_default=True,
        help="Requests that one API process answers at a time; more get 429. Watches and system:masters do not count.",
    ),
    click.option(
        "--max-requests-per-user",
        type=click.IntRange(1),
        default=200,
        show_default=True,
        help="How many of them may be one user's.",
    ),
    click.option(
        "--request-seconds",
        type=click.IntRange(1),
        default=60,
        show_default=True,
        help="How long a request other than a watch may take; then it gets 504.",
    ),
    click.option(
        "--shutdown-seconds",
        type=click.IntRange(0),
        default=5,
        show_default=True,
        help="How long a stopping API process waits for requests under way, after it has ended the watches.",
    ),
    click.option(
        "--max-push-mib",
        type=click.IntRange(1),
        default=100,
        show_default=True,
        help="How large a push to the hosted repository may be, in MiB.",
    ),
    click.option(
        "--max-connections-per-address",
        type=click.IntRange(0),
        default=1000,
        show_default=True,
        help="Connections that one API process takes from one address; more get 429 or are closed. 0: no bound.",
    ),
    click.option(
        "--head-seconds",
        type=click.IntRange(1),
        default=30,
        show_default=True,
        help="How long a client may take for the handshake of TLS, and for the head of a request.",
    ),
    click.option(
        "--idle-seconds",
        type=click.IntRange(1),
        default=90,
        show_default=True,
        help="How long a connection is kept for another request.",
    ),
    click.option(
        "--stall-seconds",
        type=click.IntRange(1),
        default=60,
        show_default=True,
        help="How long a client may neither send of what it sends nor take of what it is sent.",
    ),
    click.option("--no-sync", "sync_writes", flag_value=False, default=True, hidden=True),
)


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Decorates the command with all of them."""
    return reduce(lambda done, option: option(done), reversed(_OPTIONS), command)


def settings(given: dict[str, Any]) -> UpSettings:
    """What the options come to. `given`: their values by parameter, named as the settings are."""
    address: Address = given.pop("listen")
    keys = given.pop("keys_dir") or given["data_dir"] / "keys"
    bounds = Bounds(**{each.name: given.pop(each.name) for each in fields(Bounds)})
    return UpSettings(host=address.host, port=address.port, keys_dir=keys, bounds=bounds, **given)
