"""`treeplane comment`: one comment on a pull request, with the text of a file. The wiring of reconciler/forges.

The text is what `treeplane diff -o markdown` prints. The job that makes it reads a stranger's branch and has no rights;
this one has the right to comment and reads nothing but the text (examples/ci).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import yaml

from reconciler.commands.failure import Failure
from reconciler.commands.line.output import output as output_option
from reconciler.forges.errors import ForgeError, NotSaid
from reconciler.forges.forge import ForgeUser
from reconciler.forges.keeping import KeptComment, keep
from reconciler.forges.place import FORGES, PullRequest, located
from reconciler.forges.surroundings import TOKENS, PullRequestHints, surroundings
from reconciler.forges.wire import ForgePatience
from reconciler.plugin.saying import shown

FAILED = 4

_READ = 4 * 1024 * 1024
_TOKEN = 64 * 1024
PATIENCE = ForgePatience()


@click.command()
@click.argument("file", default="-", metavar="[FILE]")
@click.option("--pull-request", type=click.IntRange(min=1), help="Its number  [default: what CI says]")
@click.option("--repository", default="", help="owner/name; of GitLab group/…/name  [default: what CI says]")
@click.option("--forge", type=click.Choice(FORGES), help="Which kind; a Forgejo is a gitea  [default: what CI says]")
@click.option("--url", default="", help="Of the forge, like https://git.example.org  [default: what CI says]")
@click.option("--name", default="fleet", show_default=True, help="Of the comment: one for each name.")
@click.option("--author", default="", help="Who the token is, where the forge does not say.")
@click.option(
    "--token-file", type=click.Path(path_type=Path, dir_okay=False), help="The token, not in the environment."
)
@output_option()
def comment(
    file: str, pull_request: int | None, repository: str, forge: str | None, url: str, name: str, author: str,
    token_file: Path | None, output: str,
) -> None:  # fmt: skip
    """Keep one comment on a pull request, with the text of FILE (default: stdin). The token is in
    $TREEPLANE_FORGE_TOKEN, or where the forge's CI has it ($GITHUB_TOKEN, $GITLAB_TOKEN, $GITEA_TOKEN)."""
    said = PullRequestHints(forge or "", url, repository, pull_request or 0)
    try:
        where = located(said, surroundings(os.environ))
        spoken = where.spoken_to(_token(where.forge, token_file, os.environ), PATIENCE)
        kept = keep(spoken, name, _text(file), ForgeUser(0, author) if author else None)
    except NotSaid as error:
        raise Failure(shown(error.text), shown(error.hint), 2) from None
    except ForgeError as error:
        raise Failure(shown(error.text), shown(error.hint), FAILED) from None
    for line in _warnings(kept):
        click.echo(shown(line), err=True)
    click.echo(render(where, kept, output), nl=False)


def render(where: PullRequest, kept: KeptComment, output: str) -> str:
    """`text`, `json` or `yaml`."""
    if output == "text":
        url = f" ({kept.comment.url})" if kept.comment.url else ""
        return shown(f"comment on {where} {kept.kept}{url}") + "\n"
    found: dict[str, Any] = {
        "pullRequest": str(where),
        "result": str(kept.kept),
        "comment": {"id": kept.comment.id, "url": kept.comment.url},
        "others": [{"id": each.id, "url": each.url} for each in kept.others],
    }
    return json.dumps(found, indent=2) + "\n" if output == "json" else yaml.safe_dump(found, sort_keys=False)


def _warnings(kept: KeptComment) -> list[str]:
    found = []
    if kept.others:
        which = ", ".join(each.url or str(each.id) for each in kept.others)
        found.append(f"there are more comments of this name, which stay as they are and may be deleted: {which}")
    if kept.stranger:
        found.append(f"the forge says that {kept.stranger} wrote it: say --author, or the next one is a second comment")
    return found


def _text(file: str) -> str:
    try:
        with click.open_file(file, "rb") as opened:
            return bytes(opened.read(_READ)).decode(errors="replace")
    except OSError as error:
        raise Failure(f"{file}: {error.strerror}", code=2) from error


def _token(forge: str, file: Path | None, environment: Mapping[str, str]) -> str:
    if file is not None:
        try:
            with file.open("rb") as opened:
                return opened.read(_TOKEN).decode(errors="replace").strip()
        except OSError as error:
            raise Failure(f"{file}: {error.strerror}", code=2) from error
    found = next((environment[name] for name in TOKENS[forge] if environment.get(name)), "")
    if not found:
        raise NotSaid("there is no token", f"put one into ${TOKENS[forge][0]}, or into a file for --token-file")
    return found.strip()
