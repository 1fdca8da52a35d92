"""Secrets that git must not hold: `<keys>/secrets/<workspace path>/*.yaml`, served like any other of that workspace.

Called by the loader. Their source is the file's path; a missing one is a condition where it is needed, not an error of
any commit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from apiserver.model import paths
from reconciler.layout.errors import LayoutError
from reconciler.layout.level import SUFFIXES
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.yamldoc import LIMIT


@dataclass(slots=True)
class DeclaredSecrets:
    """By workspace path. `errors` name files that are left out: they hold nothing else back."""

    by_workspace: dict[str, list[Manifest]] = field(default_factory=dict)
    errors: list[LayoutError] = field(default_factory=list)


def read_secrets(keys_dir: Path, only: str = "") -> DeclaredSecrets:
    """All of them, or those of the workspace path `only`. Never raises: what cannot be read is in `errors`."""
    out = DeclaredSecrets()
    top = keys_dir / "secrets"
    for directory in sorted(p for p in top.glob(only or "*") if p.is_dir()) if top.is_dir() else []:
        if not paths.is_path(directory.name):
            hint = "the directory is named as the workspace, e.g. root:team"
            out.errors.append(LayoutError(str(directory), 0, 0, "is not a workspace path", hint))
            continue
        seen: dict[tuple[str, str], Manifest] = {}
        for file in sorted(p for p in directory.rglob("*") if p.suffix in SUFFIXES and p.is_file()):
            for secret in _secrets(file, out.errors):
                place = (secret.namespace or "default", secret.name)
                if place in seen:
                    out.errors.append(secret.error(f"Secret {place[0]}/{place[1]} is also in {seen[place].path}"))
                else:
                    seen[place] = secret
        out.by_workspace[directory.name] = list(seen.values())
    return out


def _secrets(file: Path, errors: list[LayoutError]) -> list[Manifest]:
    try:
        if file.stat().st_size > LIMIT:
            raise OSError("it has more than 3 MiB")
        data = file.read_bytes()
    except OSError as error:
        errors.append(LayoutError(str(file), 0, 0, f"cannot be read ({error})"))
        return []
    found = read(data, str(file))
    errors += found.errors
    out = []
    for manifest in found.objects:
        if (manifest.gvk.group, manifest.gvk.version, manifest.gvk.kind) == ("", "v1", "Secret"):
            out.append(manifest)
        else:
            errors.append(manifest.error(f"{manifest.gvk.kind} {manifest.name}: only Secrets may stand here"))
    return out
