"""Ephemeral containers: added to a Pod that runs, for somebody to look around in it, and never taken away again."""

from __future__ import annotations

from apiserver.model.errors import Cause
from apiserver.registry.behaviours.base import Object, not_found
from apiserver.schema import messages

_REFUSED = ("ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
            "readinessProbe", "startupProbe", "lifecycle")  # fmt: skip
_NO_SUBPATH = ("subPath", "subPathExpr")
_CANNOT = "cannot be set for an Ephemeral Container"


def check(path: str, spec: Object) -> list[Cause]:
    """What only ephemeral containers may not have. `path` is that of their list."""
    causes: list[Cause] = []
    others = {c.get("name") for field in ("containers", "initContainers") for c in spec.get(field) or ()}
    for index, container in enumerate(spec.get("ephemeralContainers") or ()):
        at = f"{path}[{index}]"
        target = container.get("targetContainerName")
        if target and target not in others:
            causes.append(not_found(f"{at}.targetContainerName", target))
        causes += [messages.forbidden(f"{at}.{f}", _CANNOT) for f in _REFUSED if container.get(f)]
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            there = [f for f in _NO_SUBPATH if mount.get(f)]
            causes += [messages.forbidden(f"{at}.volumeMounts[{number}].{f}", _CANNOT) for f in there]
    return causes


def check_change(old: Object, new: Object) -> list[Cause]:
    """Of two specs: those that are there stay as they are."""
    after = {c.get("name"): c for c in new.get("ephemeralContainers") or ()}
    causes = []
    for container in old.get("ephemeralContainers") or ():
        found = after.get(container.get("name"))
        if found == container:
            continue
        done = "removed\n" if found is None else f"changed\n{_difference(container, found)}"
        text = f'existing ephemeral containers "{container.get("name")}" may not be {done}'
        causes.append(messages.forbidden("spec.ephemeralContainers", text))
    return causes


def _difference(old: Object, new: Object) -> str:
    fields = [f for f in {**old, **new} if old.get(f) != new.get(f)]
    return "\n".join(f"{f}: {messages.as_json(old.get(f))} → {messages.as_json(new.get(f))}" for f in fields)
