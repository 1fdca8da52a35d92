"""A fleet with more objects in one workspace than a commit may take away unasked."""

from __future__ import annotations

from support.loadedfleet import A, configmap

MANY = {f"{A}/many/{n:02}.yaml": configmap(f"m{n:02}") for n in range(12)}
