"""`treeplane init DIR`: a small fleet to begin with, from the templates of the layout's specification."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path

from reconciler.commands.failure import Failure


def initialize(directory: Path) -> list[str]:
    """Write the templates into `directory`; a file that is there is left alone. Returns a line for each file."""
    said = []
    with as_file(files("repo_layout") / "templates") as templates:
        if not templates.is_dir():
            raise Failure("the templates are missing from this installation", "install treeplane again")
        for template in sorted(p for p in templates.rglob("*") if p.is_file()):
            target = directory / template.relative_to(templates)
            if target.exists():
                said.append(f"{target} unchanged")
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(template.read_bytes())
            said.append(f"{target} created")
    return said
