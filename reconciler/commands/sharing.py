"""`treeplane bind`, `treeplane claims` and `treeplane crd`: what those do who offer APIs and take them. Options only.

What they ask of a server is the plugin's (reconciler/plugin): they work with any that serves kcp's API, as whom and
where the kubeconfig says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from reconciler.commands.failure import Failure
from reconciler.commands.snapshot import snapshot
from reconciler.plugin import claims as permission_claims
from reconciler.plugin.bind import WantedBinding, manifest_of
from reconciler.plugin.bind import bind as bind_export
from reconciler.plugin.claims import ACCEPTED, REJECTED
from reconciler.plugin.errors import ended
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.saying import FORMS, say, saying, tell
from reconciler.plugin.session import Session

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}

_kubeconfig = click.option("--kubeconfig", default="", help="The file to read instead of $KUBECONFIG.")

_output = click.option("--output", "-o", type=click.Choice(FORMS), default="table", show_default=True, help="The form.")


def _duration(_context: click.Context, _option: click.Parameter, text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is no time, like 30s or 2m")
    return float(found[1]) * _SECONDS[found[2] or "s"]


def _claims(text: str) -> Callable[[Any], Any]:
    return click.option(
        f"--{text}-permission-claim",
        multiple=True,
        metavar="RESOURCE.GROUP",
        callback=lambda _context, _option, given: tuple(each for text in given for each in text.split(",")),
        help=f"A claim of the export that is {text}ed. Repeatable.",
    )


def _ask(kubeconfig: str, run: Callable[[Session], None]) -> None:
    raise SystemExit(ended(lambda: run(Session(KubeconfigFiles.load(kubeconfig)))))


@click.command()
@click.argument("what", nargs=-1, required=True, metavar="[apiexport] WORKSPACE:EXPORT")
@click.option("--name", default="", help="The name of the APIBinding  [default: the export's]")
@_claims("accept")
@_claims("reject")
@click.option("--accept-all-permission-claims", "every", flag_value=ACCEPTED, help="Accept all that the export claims.")
@click.option("--reject-all-permission-claims", "every", flag_value=REJECTED, help="Reject all that the export claims.")
@click.option("--timeout", default="30s", show_default=True, callback=_duration, help="How long it may take.")
@click.option("--dry-run", "dry", is_flag=True, help="Bind nothing; with -o yaml or json, show what would be made.")
@_output
@_kubeconfig
def bind(what: tuple[str, ...], name: str, every: str | None, timeout: float, kubeconfig: str, **given: Any) -> None:
    """Bind another workspace's APIExport in the current one."""
    match what:
        case [reference] | ["apiexport", reference]:
            pass
        case _:
            raise click.UsageError("name one export, like root:shop:databases")
    accepted, rejected = given["accept_permission_claim"], given["reject_permission_claim"]
    wanted = WantedBinding(reference, name, accepted, rejected, every or "", timeout)
    output, dry = given["output"], given["dry"]

    def run(session: Session) -> None:
        if dry and output == "table":
            say(f"apibinding {manifest_of(session, wanted)['metadata']['name']} created (dry run)")
            return
        made = manifest_of(session, wanted) if dry else bind_export(session, wanted, saying(output))
        if output != "table":
            tell(made, output)

    _ask(kubeconfig, run)


@click.group()
def claims() -> None:
    """Show and answer the permission claims of the current workspace's APIBindings."""


@claims.command("get")
@click.argument("what", type=click.Choice(["apibinding"]), default="apibinding")
@click.argument("name", default="")
@_output
@_kubeconfig
def get_claims(what: str, name: str, output: str, kubeconfig: str) -> None:  # noqa: ARG001
    """List the claims of the APIBinding NAME, or of all there are."""

    def run(session: Session) -> None:
        found = permission_claims.rows(session, name)
        if output == "table":
            say("\n".join(permission_claims.table(found)))
        else:
            tell(found, output)

    _ask(kubeconfig, run)


def _answering(verb: str, state: str) -> click.Command:
    @click.command(verb, help=f"{verb.capitalize()} a claim of the APIBinding NAME, or all that there are.")
    @click.argument("name")
    @click.option("--resource", default="", metavar="RESOURCE.GROUP", help="The claim on this resource.")
    @click.option("--identity-hash", default="", help="The claim of this identity.")
    @_output
    @_kubeconfig
    def answer(name: str, resource: str, identity_hash: str, output: str, kubeconfig: str) -> None:
        def run(session: Session) -> None:
            said = permission_claims.answer_claims(session, name, state, resource=resource, identity=identity_hash)
            saying(output)(said)
            if output != "table":
                tell(permission_claims.rows(session, name), output)

        _ask(kubeconfig, run)

    return answer


claims.add_command(_answering("accept", ACCEPTED))
claims.add_command(_answering("reject", REJECTED))


@click.group()
def crd() -> None:
    """Work with CustomResourceDefinitions."""


@crd.command("snapshot")
@click.option("--filename", "-f", required=True, help="A file of definitions; - for stdin.")
@click.option("--prefix", required=True, help="What the schemas' names begin with, before <resource>.<group>.")
@click.option("--output", "-o", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def crd_snapshot(filename: str, prefix: str, output: str) -> None:
    """Print APIResourceSchemas that say what CustomResourceDefinitions say."""
    try:
        with click.open_file(filename, "rb") as file:
            data = file.read()
    except OSError as error:
        raise Failure(f"{filename}: {error.strerror}") from error
    click.echo(snapshot(data, "<stdin>" if filename == "-" else filename, prefix, output), nl=False)
