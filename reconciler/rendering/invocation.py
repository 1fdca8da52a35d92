"""What is typed: how each tool is asked for its version and for a directory, and all the environment that it gets.

Called by tools and renderer. Outputs must not depend on the machine or the day, so all that a chart can ask of a
cluster is said here. docs/rendering.md tells users the same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.rendering.request import Tool
from reconciler.rendering.settings import RenderingSettings

VERSION_OF = {Tool.KUSTOMIZE: ("version", "--client"), Tool.HELM: ("version", "--short")}

_NOWHERE = "/nowhere"
_LONGEST_NAME = 53
"""Characters of a release's name, as helm has it."""
_NO_NAME = re.compile(r"[^a-z0-9]+")


def arguments(tool: Tool, directory: str, settings: RenderingSettings) -> tuple[str, ...]:
    """For a program that starts in the directory. It is never named: kustomize takes some names for URLs."""
    if tool is Tool.KUSTOMIZE:
        return ("kustomize", ".")
    apis = (part for api in settings.api_versions for part in ("--api-versions", api))
    # Hooks are what an installation runs before or after; here nobody installs.
    told = ("--namespace", "default", "--include-crds", "--no-hooks", "--kube-version", settings.kube_version)
    return ("template", release_name(directory), ".", *told, *apis)


def release_name(directory: str) -> str:
    """The directory's own, as far as helm takes it for a release's name."""
    last = directory.rpartition("/")[2].lower()
    return _NO_NAME.sub("-", last)[:_LONGEST_NAME].strip("-") or "release"


def environment(memory: int) -> Mapping[str, str]:
    """Nothing of this process's own. `memory`: bytes that it may take; Go's collector begins in time, and before that
    lets go of less than it would, which is a quarter of the time of a small kustomization."""
    homes = ("HOME", "PATH", "KUBECONFIG", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS")
    go = {"GOMAXPROCS": "1", "GOGC": "400", "GOMEMLIMIT": f"{memory // 4 * 3}B"}
    return {**dict.fromkeys(homes, _NOWHERE), **go, "LC_ALL": "C", "TZ": "UTC"}
