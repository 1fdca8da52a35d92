"""What a commit takes away from what is served, and whether it may: pure.

Called by loading. What is lost is written down in lines, one an object, whose hash names this very loss: a commit that
says `Allow-Delete: <hash>` allows it and no other.

    root:shop:web configmaps default/app
    root:shop:web namespaces /staging
    root:shop:web persistentvolumeclaims db/data (copy)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.model.counts import counted
from apiserver.model.storagenames import EXPORTS, SYNC_TARGETS

PROTECTED = "treeplane.dev/protected"
"""Annotation. "true" on an object: it goes only if that is allowed. "false" on an object, on a workspace (for all in
it) or on a WorkspaceType: it may go."""
ALLOW = "Allow-Delete"
"""The trailer of a commit."""
_SHARED = (EXPORTS, SYNC_TARGETS)
_DIGITS = 40
SHARE_FROM = 10
"""Fewer deletions are no matter of their share."""
_SHOWN = 20
_COPY = " (copy)"
_WHY = re.compile(r" would be deleted, and (.*)\. They are: ", re.DOTALL)
_TOLD = re.compile(r"(?:They are: |; )(\S+) (\S+) ([^/; ]+)/([^; ]+) \(copy\)(?=[;.])")


class Line(NamedTuple):
    """An object: workspace path, resource with its group, namespace ("" for cluster-scoped ones), name. `copy`: not the
    object itself goes, but its copy on the cluster that it runs on."""

    path: str
    resource: str
    namespace: str
    name: str
    copy: bool = False

    def __str__(self) -> str:
        return f"{self.path} {self.resource} {self.namespace}/{_on_one_line(self.name)}{_COPY if self.copy else ''}"


class Loss(NamedTuple):
    """`protected`: why it is not to go just so, "" if it may. `free`: it does not even count."""

    line: Line
    protected: str = ""
    free: bool = False


class RefusedDeletion(NamedTuple):
    """What has to be allowed first, and why."""

    losses: tuple[Loss, ...]
    why: str

    def __str__(self) -> str:
        """With the first of the lines, and the command that allows this very loss."""
        lines = self.lines()
        shown = lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], f"and {len(lines) - _SHOWN} more"]
        told = f"{self._counted()} would be deleted, and {self.why}. They are: {'; '.join(shown)}"
        return f"{told}. To delete them, push: {command([self.digest])}"

    def _counted(self) -> str:
        copies = sum(loss.line.copy for loss in self.losses)
        objects = len(self.losses) - copies
        counts = [(objects, "object", "objects")] if objects or not copies else []
        counts += [(copies, "copy on a cluster", "copies on clusters")] if copies else []
        return " and ".join(counted(*each) for each in counts)

    def lines(self) -> list[str]:
        return sorted(str(loss.line) for loss in self.losses)

    @property
    def for_others(self) -> bool:
        """Whether what others have is a reason: consumers' objects, or copies on a sync target."""
        return any(loss.protected and loss.line.resource in _SHARED for loss in self.losses)

    @property
    def digest(self) -> str:
        return digest_of(self.losses)


def standing(losses: tuple[Loss, ...], errors: Iterable[str]) -> RefusedDeletion | None:
    """The refusal of this very loss that errors tell of already."""
    found = (_WHY.search(error) for error in errors if digest_of(losses) in error)
    return next((RefusedDeletion(losses, match[1]) for match in found if match), None)


def copies_told(errors: Iterable[str]) -> Iterator[Line]:
    """The copies that refusals tell of."""
    for error in errors:
        for path, resource, namespace, name in _TOLD.findall(error) if _WHY.search(error) else ():
            yield Line(path, resource, namespace, name, copy=True)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the served commit. `objects`: how many may go from a workspace, `share`: how many of a hundred."""

    objects: int = 100
    share: int = 30


def _on_one_line(name: str) -> str:
    """Names of RBAC's kinds may hold nearly anything: none may look like another line, or like a shorter name."""
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in name)


def digest(lines: Iterable[Line]) -> str:
    """What names a loss."""
    text = "".join(f"{line}\n" for line in sorted(map(str, lines)))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def is_digest(text: str) -> bool:
    return re.fullmatch(f"[0-9a-f]{{{_DIGITS}}}", text) is not None


def refusal(losses: Sequence[Loss], total: int, limits: Limits) -> str:
    """Why these losses of a workspace with `total` objects have to be allowed; "" if they need not."""
    weighed = [loss for loss in losses if not loss.free]
    protected = [loss for loss in weighed if loss.protected]
    if protected:
        first = protected[0]
        more = f" and {len(protected) - 1} more" if len(protected) > 1 else ""
        return f"{str(first.line).removeprefix(first.line.path + ' ')}{more} is protected: {first.protected}"
    if len(weighed) > limits.objects:
        return f"spec.safety.maxDeletedObjects allows {limits.objects} in one commit"
    if len(weighed) >= SHARE_FROM and len(weighed) * 100 > limits.share * total:
        return f"spec.safety.maxDeletedShare allows {limits.share} % of its {total} objects in one commit"
    return ""


def digest_of(losses: Iterable[Loss]) -> str:
    return digest(loss.line for loss in losses)


def command(digests: Iterable[str]) -> str:
    """Makes the commit that allows losses."""
    return f"git commit --allow-empty -m 'Allow deletion' -m '{ALLOW}: {' '.join(digests)}'"
