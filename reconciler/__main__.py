"""The command line: `treeplane up`, `validate`, `diff`, `init`, `ws`. Each command is a module of commands/line, or of
commands itself, which is imported when the command is typed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from reconciler.commands.failure import of_files
from reconciler.plugin.meant import meant

_COMMANDS = {
    "backup": "line.recovering:backup",
    "bind": "sharing:bind",
    "blame": "line.history:blame",
    "claims": "sharing:claims",
    "comment": "comment:comment",
    "completion": "line.tools:completion",
    "crd": "sharing:crd",
    "diff": "line.reviewing:diff",
    "drill": "line.recovering:drill",
    "grant": "line.granting:grant",
    "hook": "line.hooking:hook",
    "init": "line.beginning:init",
    "kcp": "line.kcp:kcp",
    "kubeconfig": "line.kubeconfigs:kubeconfig",
    "log": "line.history:log",
    "mv": "line.moving:mv",
    "pin": "line.pinning:pin",
    "plugin": "line.tools:plugin",
    "pushes": "line.pushing:pushes",
    "recover": "line.recovering:recover",
    "reconcile": "line.serving:reconcile",
    "reconcile-now": "line.watching:reconcile_now",
    "restore": "line.restoring:restore",
    "resume": "line.pinning:resume",
    "status": "line.watching:status",
    "suspend": "line.pinning:suspend",
    "target": "line.target:target",
    "trace": "line.history:trace",
    "up": "line.serving:up",
    "validate": "line.validating:validate",
    "version": "line.tools:version",
    "ws": "line.beginning:ws",
}
"""By name, the module of commands and what it is called there."""


class CommandsByName(click.Group):
    """Its commands are imported one by one: `--help` alone needs all. A disk that is full or read-only, a file that is
    another user's: whichever command meets such a thing ends with a sentence."""

    def invoke(self, ctx: click.Context) -> Any:
        from apiserver.logs.records import log_at_last  # noqa: PLC0415 - a shell that completes would wait for it

        log_at_last("treeplane")
        try:
            return super().invoke(ctx)
        except OSError as error:
            failure = of_files(error)
            if failure is None:
                raise
            raise failure from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_COMMANDS, *super().list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = _COMMANDS.get(cmd_name)
        if where is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = where.partition(":")
        found: click.Command = getattr(import_module(f"reconciler.commands.{module}"), name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """What is no command is told with those that may have been meant."""
        if (
            args
            and not ctx.resilient_parsing
            and not args[0].startswith("-")
            and self.get_command(ctx, args[0]) is None
        ):
            ctx.fail(f"there is no command {args[0]}{meant(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


@click.group(cls=CommandsByName, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="treeplane")
def main() -> None:
    """A Kubernetes control plane whose database is a git repository."""


if __name__ == "__main__":
    main()
