"""The kubectls of this machine: $KUBECTL, the one on PATH, and the one that was built for real clusters, if it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

from realclusters import binaries


def kubectls() -> dict[str, str]:
    """Paths by version; one that has to be built first is ""."""
    built = sorted(binaries.cache_home().glob("*/kubectl"))
    found = {}
    for path in (os.environ.get("KUBECTL"), shutil.which("kubectl"), *built[-1:]):
        if path:
            command = [path, "version", "--client", "--output=json"]
            version = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["clientVersion"]
            found.setdefault(version["gitVersion"], str(path))
    return found or {"built": ""}


KUBECTLS = kubectls()
