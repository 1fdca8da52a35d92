"""What of a workspace's manifests was accepted before, so that a stricter definition does not stand in its way.

Called by phases.kinds. As in Kubernetes, a CustomResourceDefinition may become stricter than objects that there are:
what did not change since it was accepted may stay, what changes has to pass. That is for workspaces whose writes are
commits. Where people push, a commit that leaves objects behind is one that they want to hear of.

Accepted is what the last good commit of the workspace said. Without a status branch there is no past, and everything
has to pass. At recovery the very commit is judged which the status branch says was served: whatever it says was
accepted, in every mode, so that a store made anew has the objects that the lost one had.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from apiserver.admission.writes import COMMIT
from reconciler.layout.manifest import Manifest
from reconciler.loading.case import Recorded, was_served
from reconciler.loading.gather import Gathered
from reconciler.loading.render import Accepted, Object, itself


class _Name(NamedTuple):
    group: str
    kind: str
    namespace: str
    name: str


def accepted(gathered: Gathered, writes: str) -> Accepted | None:
    """What excuses manifests, None where nothing does. `writes`: the mode of the workspace."""
    if writes != COMMIT:
        return None

    @functools.cache
    def before() -> dict[_Name, Object]:
        return {_name(manifest): manifest.value for manifest in gathered.old}

    return lambda manifest: before().get(_name(manifest))


def accepted_once(recorded: Recorded | None) -> Accepted | None:
    """The same at recovery."""
    return itself if was_served(recorded) else None


def _name(manifest: Manifest) -> _Name:
    return _Name(manifest.gvk.group, manifest.gvk.kind, manifest.namespace or "default", manifest.name)
