"""Files that are something else than manifests, told as what they are. Called by manifest, for errors alone.

A guess by a file's name and by what stands at its top, and never why a file is refused: that it holds no object is
known by then.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

ELSEWHERE = "name it in .treeplaneignore, or keep it outside of workspaces/"
_TEMPLATED = re.compile(rb"\{\{-?\s*(?:\.(?:Values|Release|Chart|Capabilities)\b|(?:include|template|define|toYaml)\s)")
_VALUES = re.compile(r"values([-._].*)?\.ya?ml|.*[-._]values\.ya?ml")
_COMPOSE = re.compile(r"(docker-)?compose([-._].*)?\.ya?ml")
_WITH_A_CHART = "stands beside the Chart.yaml of a chart that is rendered (docs/rendering.md)"


class Guess(NamedTuple):
    """What a file seems to be, as the end of a sentence that begins with its name; and what to do."""

    text: str
    hint: str


def template(data: bytes) -> Guess | None:
    """Of a file that is no YAML."""
    if _TEMPLATED.search(data) is None:
        return None
    text = "is a template of a Helm chart, and no manifest"
    return Guess(text, f"it {_WITH_A_CHART}, in templates/; or commit what helm template makes of it")


def no_object(path: str, value: dict[str, Any]) -> Guess | None:
    """Of a document that has nothing of what every object has; None where it has some of it, and is a manifest with a
    mistake."""
    if any(part in value for part in ("apiVersion", "kind", "metadata")):
        return None
    name = path.rpartition("/")[2].lower()
    if _COMPOSE.fullmatch(name) or isinstance(value.get("services"), dict):
        text = "is a compose file: Kubernetes knows nothing of those"
        return Guess(text, f"write a Deployment and a Service for each of its services, and {ELSEWHERE}")
    if _VALUES.fullmatch(name):
        return Guess("holds values of a Helm chart, and no object", f"it {_WITH_A_CHART}; else {ELSEWHERE}")
    return Guess("holds no object: apiVersion, kind and metadata are missing", f"if it is none, {ELSEWHERE}")
