"""What an installation contains, as CycloneDX says it: every package that the lock file names, with its hashes.

Made for a release (build.py) and, of what an image really has, for the image: `python3 -m release.sbom SITE-PACKAGES`
says that with the packages' own licences.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from release.environment import entries

Component = dict[str, Any]
_PLACE = uuid.uuid5(uuid.NAMESPACE_DNS, "treeplane.dev")
_FIRST = re.compile(r"([A-Za-z0-9._-]+)==([^ ;\\]+)(?: ; (.+?))?\s*\\?$")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def locked(source: Path) -> list[Component]:
    """Of the lock file of what runs, and Treeplane itself. A package has one hash for each of its files."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    found = [_component(project["name"], project["version"])]
    for entry in entries((source / "requirements" / "run.txt").read_text()):
        said = _FIRST.match(entry.splitlines()[0])
        assert said is not None, entry
        name, version, marker = said.groups()
        component = _component(name, version)
        files = [{"type": "distribution", "hashes": [{"alg": "SHA-256", "content": h}]} for h in _HASH.findall(entry)]
        component["externalReferences"] = [{**each, "url": component["purl"]} for each in files]
        if marker:
            component["properties"] = [{"name": "treeplane:only-where", "value": marker}]
        found.append(component)
    return found


def installed(site: Path) -> list[Component]:
    """Of a directory of packages."""
    return [_of(each) for each in distributions(path=[str(site)])]


def _of(found: Distribution) -> Component:
    component = _component(found.metadata["Name"], found.version)
    said = found.metadata
    licence = next((said[key] for key in ("License-Expression", "License") if key in said), "")
    if licence and "\n" not in licence:
        component["licenses"] = [{"license": {"name": licence}}]
    return component


def _component(name: str, version: str) -> Component:
    name = re.sub(r"[-_.]+", "-", name).lower()
    purl = f"pkg:pypi/{name}@{version}"
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def text(components: Iterable[Component], epoch: int) -> str:
    """The same for the same components."""
    listed = sorted(components, key=lambda each: str(each["purl"]))
    content = json.dumps(listed, sort_keys=True)
    made = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_PLACE, content)}",
        "version": 1,
        "metadata": {"timestamp": datetime.fromtimestamp(epoch, UTC).isoformat().replace("+00:00", "Z")},
        "components": listed,
    }
    return json.dumps(made, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    sys.stdout.write(text(installed(Path(sys.argv[1])), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
