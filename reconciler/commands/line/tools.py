"""`treeplane plugin`, `treeplane version` and `treeplane completion`. See line."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from reconciler.commands import onefile, versions
from reconciler.commands.failure import Failure
from reconciler.plugin.saying import FORMS, say, tell

_PROGRAM = "treeplane"


@click.command()
@click.argument("directory", metavar="DIRECTORY | -")
def plugin(directory: str) -> None:
    """Write kubectl's plugin into DIRECTORY as one file, kubectl-ws, for machines that have Python 3.11 and kubectl and
    nothing else; with its other names, kubectl-create-workspace and kubectl_complete-ws. With - print the file."""
    if directory == "-":
        if sys.stdout.isatty():
            raise click.UsageError("the file is none for a terminal: treeplane plugin - > kubectl-ws")
        sys.stdout.buffer.write(onefile.built())
        return
    try:
        for path, done in onefile.write(Path(directory)):
            say(f"{path} {done}")
    except OSError as error:
        raise Failure(f"{error.filename or directory}: {error.strerror}", "name a directory to write to") from error


@click.command()
@click.option("--output", "-o", type=click.Choice(FORMS), default="table", show_default=True, help="The form.")
@click.option("--kubeconfig", default="", help="The file to read instead of $KUBECONFIG.")
def version(output: str, kubeconfig: str) -> None:
    """Print the versions of this program, of git and kubectl, and of the server that the kubeconfig names."""
    found = versions.versions(kubeconfig)
    if output == "table":
        say("\n".join(versions.table(found)))
    else:
        tell(found, output)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what has SHELL complete commands, options and workspaces: source <(treeplane completion bash)."""
    found = get_completion_class(shell)
    if found is None:
        raise Failure(f"nothing is known of {shell}")
    script = found(context.find_root().command, {}, _PROGRAM, f"_{_PROGRAM.upper()}_COMPLETE").source()
    # To bash a colon ends a word, and workspaces have them.
    click.echo(f"COMP_WORDBREAKS=${{COMP_WORDBREAKS//:}}\n{script}" if shell == "bash" else script)
