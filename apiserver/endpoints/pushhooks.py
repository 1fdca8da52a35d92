"""What git's hooks around a push to the hosted repository say: whether it is taken, and what was made of it.

Put into the repository by githooks. They start no interpreter, which would take longer than the push: they are shell,
and talk to the reconciler through files below `treeplane/` in the repository (reconciler/commands/spool and verdicts,
which say what may stand there). Nobody is waited for longer than five seconds, and where nobody answers the push is
taken, unless the fleet says who may push what.

Who pushes is in the environment (PUSHER), where the API worker alone puts it. A push by a path of this machine comes
without, or with what whoever makes it says: he may write into the repository, and so may say anything. What it holds is
a stranger's text: it is written as it is, and never read as words of the shell.
"""

from __future__ import annotations

import re
import shlex

VERDICTS = "treeplane/verdicts"
"""In the repository, while it is served: one file for each of the newest heads, named by it. Its first line is a word:
HELD_VERDICT where something of it is not served, or nothing."""
HELD_VERDICT = "held"
SERVED_VERDICT = "served"
ASKED = "treeplane/asked"
"""A directory, while it is served: what is asked about pushes, and answered."""
BELL = "treeplane/bell"
"""A pipe with a name, while it is served: a byte in it has the reconciler look."""
REFUSES = "treeplane/refuses"
"""A file, as long as the served commit has hooks ask (`spec.push: Refuse`), whether anybody is at work or not. Where it
says MUST, who may push what is decided by the answer: no push is taken without."""
MUST = "must"
PUSHED = "treeplane/pushed"
"""A directory: for each of the newest commits that were pushed through the server a file, named by it. The first line
is the commit that the branch was at, the second what PUSHER was (repository/pushrecords)."""
PUSHER = "TREEPLANE_PUSHER"
"""In the environment of a push through the server: the authenticated user, as one line of JSON. Nothing: a path."""
PROPOSES = "TREEPLANE_PROPOSES"
"""In the environment of a push through the server: what the names of the branches begin with on which the user
proposes, ANYONES for one who may write on those of others, nothing for who has none. Not there: a path, and whoever
pushes by one may write into the repository in any case."""
ANYONES = "*"
LONGEST_PUSHER = 64 * 1024
"""Bytes of it. Linux takes twice as many in one variable."""
MOST_WAITING = 32
"""Pushes that may ask at a time."""

# A pipe that is opened to be read as well is open at once, whoever is at the other end. Most answers are there within a
# tenth of a second; who waits longer looks less closely, and at the clock, which is a program each time. No alarm runs
# beside it: where that is ended as it begins, git waits for it. Where the machine stood still, or the clock was set,
# all the time may be over at once, and who is to answer stood still as well: so many looks are taken in any case, which
# take no longer otherwise.
_COMMON = """\
#!/bin/sh
# Written by treeplane at each start: changes made here are lost.
ring() { [ ! -p BELL ] || echo 1<>BELL; }
begin() { tries=0 since='' waited=0; }
pause() {
    if [ $tries -lt 25 ]; then sleep 0.02; else sleep 0.1; fi
    tries=$((tries + 1))
    [ $((tries % 8)) -eq 0 ] || return 0
    now=$(date +%s)
    since=${since:-$now}
    waited=$((now - since))
}
patient() { [ $waited -lt $1 ] || [ $tries -lt $2 ]; }
"""

_MUST = """\
must() {
    [ -f REFUSES ] || return 1
    [ -r REFUSES ] || return 0
    said=
    read -r said <REFUSES
    [ "$said" = MUST ]
}
"""

_PRE_RECEIVE = """\
[ -f REFUSES ] || exit 0
asked=
while read -r old new ref; do
    [ "$ref" = SERVED ] || continue
    # git would move it as the first one says, and the last one be judged.
    [ -z "$asked" ] || { printf 'treeplane: refused, since it moves %s twice\\n' "$ref" >&2; exit 1; }
    asked="$old $new $ref"
done
# Another branch, one that begins, or its end, which is refused elsewhere.
case ${asked%% *} in *[!0]*) ;; *) exit 0 ;; esac
new=${asked#* }
case ${new%% *} in *[!0]*) ;; *) exit 0 ;; esac
name=${GIT_QUARANTINE_PATH##*/}
file=ASKED/$name
tidy() { [ -z "$name" ] || rm -f "$file.new" "$file.ask" "$file.taken" "$file.answer"; }
trap tidy EXIT
trap 'exit 1' HUP INT TERM
unjudged() {
    if must; then
        printf 'treeplane: refused, since it could not be judged: %s; try again\\n' "$*" >&2
        exit 1
    fi
    printf 'treeplane: taken without being judged: %s\\n' "$*" >&2
    exit 0
}
case $name in
'' | *[!A-Za-z0-9_-]*) name=; unjudged "git does not say where it keeps what is pushed" ;;
esac
[ -p BELL ] && [ -d ASKED ] || unjudged "no server is at work here"
set -- ASKED/*.ask
[ $# -le MOST ] || unjudged "too many pushes come at a time"
rm -f "$file.taken" "$file.answer"
umask 077
{ printf '%s\\n%s\\n' "$asked" "${PUSHER-}" >"$file.new" && mv "$file.new" "$file.ask"; } 2>/dev/null ||
    unjudged "the server cannot be asked"
ring
begin
until [ -f "$file.answer" ]; do
    [ -f "$file.ask" ] || [ -f "$file.taken" ] || [ -f "$file.answer" ] || unjudged "the server ends, or begins anew"
    patient 2 32 || [ ! -f "$file.ask" ] || unjudged "the server is away, or busy"
    patient 4 48 || unjudged "that takes longer than five seconds"
    pause
done
word=
{ read -r word <"$file.answer"; } 2>/dev/null
case $word in
take | refuse) sed -n '2,$s/^/treeplane: /p' "$file.answer" >&2 ;;
unjudged) unjudged "$(sed -n 2p "$file.answer")" ;;
*) unjudged "what the server answers cannot be read" ;;
esac
[ "$word" = take ]
"""

# What git is about to refuse changes nothing: a branch that is elsewhere by now, or stays where it is. Else anybody
# could say of what others pushed that it was him.
_RECORD = """\
record() {
    now=$(git rev-parse --verify --quiet "$1") || now=$4
    [ "$now" = "$2" ] && [ "$2" != "$3" ] || return 0
    file=PUSHED/$3 aside=PUSHED/$3.$$
    if [ -z "${PUSHER-}" ]; then
        rm -f "$file" 2>/dev/null && return 0
    else
        (umask 077 && printf '%s\\n%s\\n' "$2" "$PUSHER" >"$aside" && mv -f "$aside" "$file") 2>/dev/null && return 0
        rm -f "$aside" 2>/dev/null
    fi
    ! must
}
"""

_POST_RECEIVE = """\
while read -r old new ref; do
    [ "$ref" = SERVED ] && [ -d VERDICTS ] || continue
    ring
    begin
    while [ -d VERDICTS ] && [ ! -f "VERDICTS/$new" ] && patient 4 48; do
        pause
    done
    if [ -f "VERDICTS/$new" ]; then
        sed -n '2,$s/^/treeplane: /p' "VERDICTS/$new"
    elif [ -d VERDICTS ]; then
        echo "treeplane: not served yet: it is taken, and the condition CommitApplied of the Workspaces says when it is"
    else
        echo "treeplane: not served yet: it is taken, and the server has ended meanwhile"
    fi
done
exit 0
"""


def pre_receive(served: str) -> str:
    """The hook that asks before anything is taken. `served`: the branch's full name."""
    return _filled(_COMMON + _MUST + _PRE_RECEIVE, served)


def post_receive(served: str) -> str:
    """The hook that tells what became of it."""
    return _filled(_COMMON + _POST_RECEIVE, served)


def recording() -> str:
    """For the hook `update`, which knows by then that the push is not refused: `record <ref> <old> <new> <zero>` notes
    who pushes. False where that cannot be done and has to be."""
    return _filled(_MUST + _RECORD)


def _filled(text: str, served: str = "") -> str:
    places = {"BELL": BELL, "ASKED": ASKED, "REFUSES": REFUSES, "VERDICTS": VERDICTS, "MOST": str(MOST_WAITING)}
    places |= {"MUST": MUST, "PUSHED": PUSHED, "PUSHER": PUSHER}
    for name, value in places.items():
        text = re.sub(rf"\b{name}\b", value, text)
    return text.replace("SERVED", shlex.quote(served))  # last: a branch may be called anything
