"""What a renderer said, as people may read it: in one line, with paths of the repository, and what to do about it.

Called by renderer. A renderer quotes whatever strangers wrote, in Go's own quoting or in logs with times and numbers of
processes, which would make another fault of the same each time. What it says of paths outside of the files that it was
shown is no answer to whoever asks whether these exist.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple

from reconciler.rendering.request import Tool

MOST = 2_000
"""Characters of a fault."""

_LOOKED_AT = 8_000
"""Characters of an error that are looked at: what looks for paths in it takes the square of their number."""

_LOG = re.compile(r'^[EF]\d{4} [\d:.]+ +\d+ [\w.]+:\d+\] "command failed" err=(.*)', re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*')
_BLOCK = re.compile(r"<\n(.*?)\n? >\s*", re.DOTALL)
_DEBUG = re.compile(r"Use --debug flag to render out invalid YAML")
_CHART = re.compile(r"(?<![\w./-])[\w.-]+/((?:charts/[\w.-]+/)*(?:templates|crds)/)")
_READ = re.compile(
    r"(?:evalsymlink failure on|security; file|new root|lstat|\bopen|\bstat|readlink|resolve to a file:?)"
    r" '?(/[^\s':]*)|'(/[^\s']*)' must resolve|'(/[^\s']*)': file is not directory"
)
"""Where kustomize names a path of the machine that it looked at."""
_ANY_PATH = re.compile(r"(?<![\w./~}\])-])/([\w.@-]+)")
_NAMED = re.compile(r"(?:resources from|source files:|file sources:|envs:) (?:'([^'\n]{1,200})'|\[([^\]\n]{1,200})\])")
"""Where it names what the kustomization says."""


class FaultWords(NamedTuple):
    fault: str
    hint: str = ""


_NETWORK = re.compile(r"socket: operation not permitted|dial (?:tcp|udp)|no 'git' program on path|Git program")
_HINTS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), hint)
    for pattern, hint in (
        (
            r"is not in or below",
            "kustomize reads single files from the directory of their kustomization alone: make the place of this "
            "file a base, with a kustomization.yaml of its own, and name that directory",
        ),
        (
            r"no such file or directory|not a valid directory",
            "what it names has to stand in the workspace, or in a directory that spec.rendering.shared of "
            "treeplane.yaml names",
        ),
        (r"must specify --enable-helm", "let the chart be a directory of its own, with its Chart.yaml in it"),
        (
            r"external plugins disabled|alpha plugins|unable to find plugin|exec plugin",
            "plugins are programs, and are not run: commit what they would print",
        ),
        (
            r"missing in charts/ directory|dependencies",
            "run `helm dependency build` and commit its charts/: nothing is fetched here",
        ),
        (r"requires kubeVersion", "choose a version of the chart that is for this one of Kubernetes"),
    )
)
_OUTSIDE = (
    "it may see the workspace's own files, and the directories that spec.rendering.shared of treeplane.yaml names"
)
_FETCHED = "there is no network where it is run: commit a copy of what it refers to, and name that"
_TRY = {
    Tool.KUSTOMIZE: "try it in a clone: kubectl kustomize {}",
    Tool.HELM: "try it in a clone: helm template {}",
}


def told(tool: Tool, directory: str, said: bytes, seen_at: str, *, blind: bool) -> FaultWords:
    """Of a renderer that failed. `seen_at`: where it saw the top of the repository; `blind`: it saw no path beside."""
    text = _own_words(said.decode("utf-8", "replace"))[:_LOOKED_AT]
    text = re.sub(rf"{re.escape(seen_at)}(/|(?![\w.-]))", lambda found: "" if found[1] else ".", text)
    if tool is Tool.HELM and directory:
        text = _CHART.sub(lambda found: f"{directory}/{found[1]}", text)
    named = _NAMED.search(text)
    what = plain(named[1] or named[2], 200) if named else ""
    if _NETWORK.search(text):
        return FaultWords(f"it would have to fetch {what or 'something'} ({plain(text, 1_000)})", _FETCHED)
    # What it was shown begins with no slash any more.
    if _READ.search(text) or not (blind or _names_nothing(text)):
        return FaultWords(f"it reads {what or 'a path'} outside of the files that it may see", _OUTSIDE)
    trying = _TRY[tool].format(plain(directory, 300) or ".")
    hint = next((hint for pattern, hint in _HINTS if pattern.search(text)), trying)
    return FaultWords(plain(text) or f"{tool} failed without a word", hint)


def _names_nothing(text: str) -> bool:
    """Whether no path in it begins as those of this machine do; those in patches of JSON look the same."""
    there = set(os.listdir("/"))  # noqa: PTH208
    return not any(found[1] in there for found in _ANY_PATH.finditer(text))


def plain(text: str, most: int = MOST) -> str:
    """On one line, with nothing that acts on a terminal, cut."""
    line = " ".join(text[: 4 * most].split())
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in line)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def _own_words(text: str) -> str:
    """The error alone, out of a log or beside warnings."""
    logged = _LOG.search(text)
    if logged:
        said = logged[1]
        quoted, block = _QUOTED.fullmatch(said), _BLOCK.fullmatch(said)
        if quoted:
            return _unquoted(quoted[1])
        return block[1] if block else said
    at = re.search(r"^(?:Error|error): ", text, re.MULTILINE)
    return _DEBUG.sub("", text[at.end() :] if at else text)


def _unquoted(text: str) -> str:
    """As far as Go's quoting matters to a reader."""
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": " "}.get(found[1], found[1]), text)
