"""Which versions of what meet here: this program's, those of the programs that it calls, the server's. Nothing that is
missing is an error; it says so in its place.
"""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from reconciler.plugin.errors import PluginError
from reconciler.plugin.kubeconfigs import KubeconfigFiles
from reconciler.plugin.session import Session

_SECONDS = 5.0
"""For each that is asked."""
_NUMBER = re.compile(r"v?[0-9]+(?:\.[0-9A-Za-z+-]+)+")


def versions(kubeconfig: str) -> dict[str, Any]:
    """By what it is of: `version`, or `missing` with the reason."""
    return {
        "client": {"version": _own(), "python": platform.python_version()},
        "git": _program("git", "version"),
        "kubectl": _kubectl(),
        "server": _server(kubeconfig),
    }


def table(found: dict[str, Any]) -> Iterator[str]:
    for what, told in found.items():
        version_ = told.get("version")
        more = f" (Python {told['python']})" if "python" in told else f" at {told['url']}" if "url" in told else ""
        yield f"{what:<8} {version_}{more}" if version_ else f"{what:<8} none: {told['missing']}"


def _own() -> str:
    try:
        return version("treeplane")
    except PackageNotFoundError:
        return "unknown"


def _program(name: str, *arguments: str) -> dict[str, str]:
    path = shutil.which(name)
    if path is None:
        return {"missing": f"{name} is not on PATH"}
    try:
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"missing": f"{path} cannot be run: {error}"}
    number = _NUMBER.search(done.stdout)
    return {"version": number[0], "path": path} if number else {"missing": f"{path} does not tell its version"}


def _kubectl() -> dict[str, str]:
    return _program("kubectl", "version", "--client", "--output=json")


def _server(kubeconfig: str) -> dict[str, str]:
    """What the server of the current context says it is, to whoever may ask."""
    try:
        session = Session(KubeconfigFiles.load(kubeconfig), seconds=_SECONDS)
        answer = session.client.get("/version")
    except PluginError as error:
        return {"missing": str(error)}
    told = answer.object.get("gitVersion")
    if answer.status != 200 or not isinstance(told, str):
        return {"missing": f"{session.base} answered {answer.status}"}
    return {"version": told, "url": session.base}
