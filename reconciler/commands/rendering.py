"""Makes what renders kustomizations and charts: of a server, with its cache in the data directory; of a command on
somebody's clone, with one among the user's caches, which all clones share.

Called by whoever gives sources of manifests a `Renders`.
"""

from __future__ import annotations

import os
from pathlib import Path

from apiserver.endpoints import version
from apiserver.registry import kinds
from reconciler.rendering.renderer import DirectoryRenderer
from reconciler.rendering.settings import RenderingSettings

_CACHE = "rendering"


def renderer(cache: Path, kubectl: Path | None = None, helm: Path | None = None) -> DirectoryRenderer:
    """Of programs that PATH finds where none is named. Nothing is looked for or made before it is needed."""
    settings = RenderingSettings(
        cache, kubectl, helm, kube_version=f"v{version.MAJOR}.{version.MINOR}.0", api_versions=_served()
    )
    return DirectoryRenderer(settings)


def renderer_of_server(data_dir: Path, kubectl: Path | None = None, helm: Path | None = None) -> DirectoryRenderer:
    """All processes of a server share what is kept."""
    return renderer(data_dir / _CACHE, kubectl, helm)


def renderer_of_user() -> DirectoryRenderer:
    """For commands that work without a server."""
    told = os.environ.get("XDG_CACHE_HOME", "")
    # As the specification has it, a path that is not absolute counts for nothing.
    home = Path(told) if told.startswith("/") else Path.home() / ".cache"
    return renderer(home / "treeplane" / _CACHE)


def _served() -> tuple[str, ...]:
    """The versions of APIs that every workspace can have without definitions of its own."""
    found = set()
    for table in (kinds.workspace_builtins(), kinds.kubernetes_builtins()):
        for group, versions in table.groups().items():
            found |= {f"{group}/{each}".removeprefix("/") for each in versions}
    return tuple(sorted(found))
