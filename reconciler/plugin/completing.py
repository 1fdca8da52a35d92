"""What may follow `kubectl ws`, for a shell: kubectl asks an executable `kubectl_complete-ws` on PATH, by the protocol
of its plugins; `treeplane completion` asks the same.

Workspaces come from the server, as far as the user may list them; where it does not answer at once, there are none.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from reconciler.plugin.errors import PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.places import children
from reconciler.plugin.saying import shown
from reconciler.plugin.session import Session, from_root

_SECONDS = 3.0
_NO_FILES, _NO_SPACE = 4, 2
"""What kubectl is told: no names of files either; the word may go on."""
_COMMANDS = ("current", "use", "tree", "create", "create-context")
_OPTIONS = {
    "": ("--at", "--full", "--help", "--interactive", "--kubeconfig", "--now", "--output", "--short"),
    "create": ("--create-context", "--enter", "--help", "--ignore-existing", "--kubeconfig", "--location-selector",
               "--timeout", "--type"),
    "create-context": ("--help", "--kubeconfig", "--overwrite"),
}  # fmt: skip
_VALUED = ("--at", "--kubeconfig", "--output", "-o", "--type", "--timeout", "--location-selector", "--create-context")


def main() -> None:
    """`kubectl_complete-ws`: the words that were typed, the last of them in part."""
    *before, last = sys.argv[1:] or [""]
    found = candidates(before, last)
    directive = _NO_FILES | (_NO_SPACE if len(found) == 1 and found[0].endswith(":") else 0)
    print("\n".join([*map(shown, found), f":{directive}"]))  # noqa: T201


def candidates(before: list[str], last: str) -> list[str]:
    """Whole words that begin with `last`; never an error."""
    words = list(_positional(before))
    command = words[0] if words[:1] in (["create"], ["create-context"]) else ""
    if before and before[-1] in ("--output", "-o"):
        found = ["json", "table", "yaml"]
    elif before and before[-1] in _VALUED:
        found = []
    elif last.startswith("-") and last != "-":
        found = list(_OPTIONS[command])
    elif command or len(words) > (1 if words[:1] in (["use"], ["cd"]) else 0):
        found = []
    else:
        found = [*([] if words else _COMMANDS), *_places(_kubeconfig(before), last)]
    return [each for each in found if each.startswith(last)]


def _positional(before: list[str]) -> Iterator[str]:
    skipped = False
    for word in before:
        if not (skipped or word.startswith("-")):
            yield word
        skipped = word in _VALUED


def _kubeconfig(before: list[str]) -> str:
    for word, following in zip(before, [*before[1:], ""], strict=False):
        if word == "--kubeconfig":
            return following
        if word.startswith("--kubeconfig="):
            return word.partition("=")[2]
    return ""


def _places(kubeconfig: str, last: str) -> list[str]:
    """Workspaces, as the word begins: from the root, or from here."""
    above = last.rpartition(":")[0]
    try:
        session = Session(KubeconfigFiles.load(kubeconfig), seconds=_SECONDS)
        if from_root(last):
            names = children(session, above) if above else []
            return ["root", *(f"{above}:{name}" for name in names)]
        here = session.path()
        names = children(session, f"{here}:{above}" if above else here)
    except PluginError:
        return []
    return ["..", "root", *(f"{above}:{name}" for name in names)] if above else ["..", "root", *names]
