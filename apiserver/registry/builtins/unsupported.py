"""What kcp's kinds let one say and Treeplane does not do, kind by kind; told by reconciler/plan/unsupported.

What would limit somebody's rights is refused instead (behaviours/own.py): whoever relied on it would be wrong.
"""

from __future__ import annotations

from apiserver.registry.builtins.entry import Unsupported


def _any(field: str, instead: str) -> Unsupported:
    return Unsupported(f"spec.{field}", lambda spec: bool(spec.get(field)), instead)


LOCATION = (_any("availableSelectorLabels", "what placements select by is not compared with it"),)
SYNC_TARGET = (_any("cells", "nothing is spread by it"),)
WORKSPACE_TYPE = (_any("authenticationConfigurations", "only the server's ways of signing in are taken"),)
