"""What a push to the hosted repository may not do, as a git hook in that repository.

Installed by `up` at each start; run by git, whichever way a push comes in (HTTP, or a path on the same machine). The
server's own pushes set TREEPLANE_INTERNAL=1; requests over HTTP cannot: the endpoint builds git's environment anew.
"""

from __future__ import annotations

import shlex
from pathlib import Path

INTERNAL = "TREEPLANE_INTERNAL"

_UPDATE = """\
#!/bin/sh
# Written by treeplane at each start: changes made here are lost.
[ "${INTERNAL-}" = 1 ] && exit 0
ref=$1 old=$2 new=$3
zero=$(printf %s "$new" | tr 0-9a-f '[0*]')
served=SERVED
refuse() { echo "treeplane: $*" >&2; exit 1; }
case $ref in
STATUS)
    refuse "$ref is written by the server alone; push to $served and read the status here" ;;
SERVED)
    [ "$new" = "$zero" ] && refuse "$ref is the served branch and cannot be deleted"
    [ "$old" = "$zero" ] && exit 0
    git merge-base --is-ancestor "$old" "$new" 2>/dev/null ||
        refuse "$ref is the served branch and cannot be rewritten: fetch, rebase on it, and push again" ;;
esac
exit 0
"""


def install_hooks(git_dir: Path, branch: str, status_branch: str) -> None:
    """Make `git_dir` refuse pushes to `status_branch`, and deletion or rewriting of `branch`. Idempotent."""
    text = _UPDATE.replace("INTERNAL-", f"{INTERNAL}-")
    text = text.replace("STATUS)", f"{shlex.quote(f'refs/heads/{status_branch}')})")
    text = text.replace("SERVED)", f"{shlex.quote(f'refs/heads/{branch}')})")
    text = text.replace("served=SERVED", f"served={shlex.quote(branch)}")
    hook = git_dir / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    if not hook.exists() or hook.read_text() != text:
        # Renamed into place: a push that comes in meanwhile runs the old hook or the new one.
        fresh = hook.with_name(".update.new")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(hook)
