"""What a push to the hosted repository may not do, as git hooks in that repository; what is asked and told of one is
pushhooks'.

Installed by `up` at each start, and by the reconciler once it knows the status branch's name; run by git, whichever way
a push comes in (HTTP, or a path on the same machine). The server itself does not push there: it moves refs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from apiserver.endpoints import pushhooks
from apiserver.model.proposals import PROPOSALS

_RESERVED = "treeplane"
"""Below refs/ and refs/heads/ all of it is the server's, whatever the status branch is called, but for proposals, which
are their users' too."""

# It runs for each ref by itself, once what is pushed is judged, so what passes here is about to be taken: there it is
# written down who pushes it. Ancestors are asked for without replacements, which a push could bring along; names are
# compared as a file system does that takes capital and small letters for the same.
_UPDATE = """\
#!/bin/sh
# Written by treeplane at each start: changes made here are lost.
LC_ALL=C GIT_NO_REPLACE_OBJECTS=1
export LC_ALL GIT_NO_REPLACE_OBJECTS
ref=$1 old=$2 new=$3
served=BRANCH
refuse() { echo "treeplane: $*" >&2; exit 1; }
RECORDING
case $ref in
*[!\\ -~]*)
    [ "$(git config --type=bool core.ignorecase)" = true ] &&
        refuse "its name has letters that this file system may take for others: use ASCII"
    printf %s "$ref" | iconv -f UTF-8 -t UTF-8 >/dev/null 2>&1 || refuse "its name is not UTF-8" ;;
esac
small=$(printf %s "$ref" | tr '[:upper:]' '[:lower:]')
PROPOSALS
case $small in
RESERVED)
    refuse "$ref is written by the server alone; push to $served and read the status here" ;;
refs/heads/* | refs/tags/* | refs/notes/*) ;;
*)
    refuse "$ref: branches, tags and notes can be pushed here, nothing else" ;;
esac
case $small in
SMALL)
    zero=$(printf %s "$new" | tr 0-9a-f '[0*]')
    [ "$ref" = SERVED ] || refuse "$ref differs from the served branch in capital letters alone: choose another name"
    [ "$new" = "$zero" ] && refuse "$ref is the served branch and cannot be deleted"
    [ "$old" = "$zero" ] || git merge-base --is-ancestor "$old" "$new" 2>/dev/null ||
        refuse "$ref is the served branch and cannot be rewritten: fetch, rebase on it, and push again"
    record "$ref" "$old" "$new" "$zero" ||
        refuse "refused, since it could not be judged: who pushes cannot be written down here; try again" ;;
esac
exit 0
"""


# Spelled as the server spells them (model/proposals), so none stands in the way of another.
_PROPOSALS = """\
case $ref in
HEADS*/*/*) ;;
HEADS*[!a-z0-9=.@_+-]*/* | HEADS*/*[!a-z0-9=.@_+-]*) ;;
HEADS?*/?*)
    may=${PROPOSES-ANYONES}
    case $ref in
    HEADS"$may"/*) exit 0 ;;
    esac
    [ "$may" = 'ANYONES' ] && exit 0
    refuse "$ref is another user's proposal: push to branches below PROPOSED${may:-<your name>}/" ;;
esac
"""


def install_hooks(git_dir: Path, branch: str, status_branch: str) -> None:
    """Make `git_dir` refuse pushes to what is the server's, and deletion or rewriting of `branch`, and have it say what
    the server made of the others. Idempotent.

    The server's are `status_branch`, all refs under refs/treeplane/ and refs/heads/treeplane/, and what would stand in
    their way as files do: a branch `a` where `a/b` is one of them. Proposals are pushed to by their own users, and by
    who may push to the workspace root.
    """
    served = f"refs/heads/{branch}"
    text = _UPDATE.replace("RESERVED)", f"{' | '.join(_reserved(status_branch))})")
    text = text.replace("PROPOSALS\n", _proposals(status_branch))
    text = text.replace("SMALL)", f"{shlex.quote(_small(served))})")
    text = text.replace('"$ref" = SERVED', f'"$ref" = {shlex.quote(served)}')
    text = text.replace("RECORDING\n", pushhooks.recording())
    text = text.replace("served=BRANCH", f"served={shlex.quote(branch)}")
    (git_dir / pushhooks.PUSHED).mkdir(mode=0o700, parents=True, exist_ok=True)
    _install(git_dir / "hooks" / "update", text)
    _install(git_dir / "hooks" / "pre-receive", pushhooks.pre_receive(served))
    _install(git_dir / "hooks" / "post-receive", pushhooks.post_receive(served))


def _install(hook: Path, text: str) -> None:
    hook.parent.mkdir(exist_ok=True)
    if not hook.exists() or hook.read_text() != text:
        # Renamed into place: a push that comes in meanwhile runs the old hook or the new one.
        fresh = hook.with_name(f".{hook.name}.new")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(hook)


def _proposals(status_branch: str) -> str:
    """Nothing where the status branch stands in their way."""
    if f"{_small(status_branch)}/".startswith(PROPOSALS):
        return ""
    places = {"HEADS": shlex.quote(f"refs/heads/{PROPOSALS}"), "ANYONES": pushhooks.ANYONES}
    places |= {"PROPOSES": pushhooks.PROPOSES, "PROPOSED": PROPOSALS}
    text = _PROPOSALS
    for name, value in places.items():
        text = re.sub(rf"\b{name}\b", lambda _, value=value: value, text)  # type: ignore[misc]
    return text


def _reserved(status_branch: str) -> Iterator[str]:
    """Patterns of `case`."""
    roots = (f"refs/{_RESERVED}", f"refs/heads/{_RESERVED}", f"refs/heads/{status_branch}")
    for root in dict.fromkeys(map(_small, roots)):
        yield from (shlex.quote(root), f"{shlex.quote(f'{root}/')}*")
    parts = _small(status_branch).split("/")
    for end in range(1, len(parts)):
        yield shlex.quote(f"refs/heads/{'/'.join(parts[:end])}")


def _small(name: str) -> str:
    """As `tr` makes it: letters of ASCII alone."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
