"""What git's hooks around a push to the hosted repository say: whether it is taken, and what was made of it.

Put into the repository by githooks. They start no interpreter, which would take longer than the push: they are shell,
and talk to the reconciler through files below `treeplane/` in the repository (reconciler/commands/spool and verdicts,
which say what may stand there). Nobody is waited for longer than five seconds, and where nobody answers the push is
taken.
"""

from __future__ import annotations

import shlex

VERDICTS = "treeplane/verdicts"
"""In the repository, while it is served: one file for each of the newest heads, named by it."""
ASKED = "treeplane/asked"
"""A directory, while it is served: what is asked about pushes, and answered."""
BELL = "treeplane/bell"
"""A pipe with a name, while it is served: a byte in it has the reconciler look."""
REFUSES = "treeplane/refuses"
"""A file, as long as the served commit says `spec.push: Refuse`, whether anybody is at work or not."""
MOST_WAITING = 32
"""Pushes that may ask at a time."""

# A pipe that is opened to be read as well is open at once, whoever is at the other end. Most answers are there within a
# tenth of a second; who waits longer looks less closely, and at the clock, which is a program each time. No alarm runs
# beside it: where that is ended as it begins, git waits for it.
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
"""

_PRE_RECEIVE = """\
[ -f REFUSES ] || exit 0
asked=
while read -r old new ref; do
    [ "$ref" != SERVED ] || asked="$old $new $ref"
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
unjudged() { echo "treeplane: taken without being judged: $*" >&2; exit 0; }
case $name in
'' | *[!A-Za-z0-9_-]*) name=; unjudged "git does not say where it keeps what is pushed" ;;
esac
[ -p BELL ] && [ -d ASKED ] || unjudged "no server is at work here"
set -- ASKED/*.ask
[ $# -le MOST ] || unjudged "too many pushes come at a time"
rm -f "$file.taken" "$file.answer"
umask 077
{ echo "$asked" >"$file.new" && mv "$file.new" "$file.ask"; } 2>/dev/null || unjudged "the server cannot be asked"
ring
begin
until [ -f "$file.answer" ]; do
    [ -f "$file.ask" ] || [ -f "$file.taken" ] || [ -f "$file.answer" ] || unjudged "the server ends, or begins anew"
    [ $waited -lt 2 ] || [ ! -f "$file.ask" ] || unjudged "the server is away, or busy"
    [ $waited -lt 4 ] || unjudged "that takes longer than five seconds"
    pause
done
read -r word <"$file.answer"
sed -n '2,$s/^/treeplane: /p' "$file.answer" >&2
[ "$word" != refuse ]
"""

_POST_RECEIVE = """\
while read -r old new ref; do
    [ "$ref" = SERVED ] && [ -d VERDICTS ] || continue
    ring
    begin
    while [ -d VERDICTS ] && [ ! -f "VERDICTS/$new" ] && [ $waited -lt 4 ]; do
        pause
    done
    if [ -f "VERDICTS/$new" ]; then
        sed 's/^/treeplane: /' "VERDICTS/$new"
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
    return _COMMON.replace("BELL", BELL) + _filled(_PRE_RECEIVE, served)


def post_receive(served: str) -> str:
    """The hook that tells what became of it."""
    return _COMMON.replace("BELL", BELL) + _filled(_POST_RECEIVE, served)


def _filled(text: str, served: str) -> str:
    places = {"BELL": BELL, "ASKED": ASKED, "REFUSES": REFUSES, "VERDICTS": VERDICTS, "MOST": str(MOST_WAITING)}
    for name, value in places.items():
        text = text.replace(name, value)
    return text.replace("SERVED", shlex.quote(served))  # last: a branch may be called anything
