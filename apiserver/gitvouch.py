"""How git learns that what comes in is whole, by looking at what comes in and at nothing else.

Called by endpoints/gitservice for pushes, and by the reconciler (repository/incoming) for fetches. Before git moves a
ref it makes sure that nothing is missing: `rev-list --objects <new commits> --not --all`, which first marks all that is
there already, by opening every tree of the commits that the new ones build on. One changed file costs the whole fleet.

The same walk is to be had in `pack-objects --sparse`, which opens a tree only where another differs from it, and fails
on whatever is missing. Commits that it found whole are told to git's own check as it is told of those that stand in a
repository which is borrowed from (`core.alternateRefsCommand`): they need no second look. What comes in stands apart
until its refs move and borrows from what is there, so git asks that command.

git is left to do all else, and to refuse: nothing is vouched for where the walk fails, takes too long or cannot be
made, and git then looks by itself. Like git's, the walk takes for whole what a ref holds, and nothing just because it
is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

_CPU_SECONDS = 20
"""For the walk: 200,000 new directories take one. It goes by paths and git's own by objects, so of trees that name one
directory again and again it would see no end."""

_TIPS, _INCOMING = "TREEPLANE_TIPS", "TREEPLANE_INCOMING"

# $1 is the repository. git has taken from the environment what would point at another, and configuration given there.
# A repository without refs has nothing that could be marked, so git's own walk costs no more.
_COMMAND = f"""vouch() {{
    exec 2>/dev/null
    ulimit -t {_CPU_SECONDS}
    held=$(git --git-dir="$1" for-each-ref --format='^%(objectname)') && [ "$held" ] && [ "${_TIPS}" ] || return 0
    apart=${{GIT_QUARANTINE_PATH:-${_INCOMING}}}
    export GIT_DIR="$1" GIT_NO_REPLACE_OBJECTS=1 GIT_ALTERNATE_OBJECT_DIRECTORIES="\\"$apart\\""
    printf '%s\\n' ${_TIPS} "$held" |
        git pack-objects --revs --sparse --no-use-bitmap-index --window=0 --threads=1 -q --stdout >/dev/null &&
        printf '%s\\n' ${_TIPS}
}}
vouch"""

SETTINGS: Mapping[str, str] = {"core.alternateRefsCommand": _COMMAND}
"""Configuration for the git program that takes something in."""


def variables(tips: Iterable[str], incoming: str = "") -> dict[str, str]:
    """Environment for that program. `tips`: ids of what it is to find whole; `incoming`: the directory of objects that
    it writes to, which a push makes and names by itself."""
    return {_TIPS: " ".join(tips), _INCOMING: incoming}
