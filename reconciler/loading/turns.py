"""Whose turn it is in a step: a workspace after all that it asks for, providers before consumers, types before users.

Called by steps. A judgement that asks for a workspace which waits is put off and made again once that is judged, so
however long a chain of providers is, nothing nests.

Where workspaces ask for each other in a circle (two teams that take each other's API), or for what stands below them (a
parent that binds its child's export), no order will do. Then all of the circle are taken for good at first, and count
with what their manifests offer; they are judged so until no verdict is other than it was taken for, and only then does
any of the verdicts stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from apiserver.model import paths
from reconciler.loading.case import Needs
from reconciler.loading.offers import Offers
from reconciler.loading.world import PutOff, Waits

_FREE_ROUNDS = 8
"""Rounds of a circle after which one that was found bad stays bad, so that it comes to an end. If it is good after all
once the others' verdicts stand, it is judged by itself."""


class Steps(NamedTuple):
    """What a step does for its turns. `waits`: whether a workspace has yet to be judged. `judge`: judges one and keeps
    the verdict; whether it is good, or whom it needs. `stand`: these verdicts count. `again`: forgets one, and
    has the workspace judged once more. `offers`: what a workspace provides as its manifests say. `put_off`: whether one
    is not judged in this step, but later."""

    waits: Callable[[str], bool]
    judge: Callable[[str], bool | Needs]
    stand: Callable[[Iterable[str]], None]
    again: Callable[[str], None]
    offers: Callable[[str], Offers]
    put_off: Callable[[str], bool]


class Turns:
    """Of one step."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._under_way: dict[str, None] = {}
        self._circle: dict[str, bool] = {}
        """Whether each is taken for good."""
        self._offers: dict[str, Offers] = {}
        self._asked = False
        """Whether the judgement that is being made asked for one of the circle."""

    def take(self, path: str) -> None:
        """Judges a workspace if it waits, after whatever it asks for."""
        self._judge(path)
        if self._circle:
            self._close()

    def settled(self, path: str) -> bool:
        """See world.TakesTurns."""
        if path in self._circle:
            self._asked = True
            return not self._circle[path]
        waits = self._steps.waits(path)
        if self._steps.put_off(path):
            raise PutOff(path)
        if not waits:
            return True
        raise Waits(path)

    def offers(self, path: str) -> Offers:
        """See world.TakesTurns."""
        if path not in self._offers:
            self._offers[path] = self._steps.offers(path)
        return self._offers[path]

    def forget(self, path: str) -> None:
        """Read what a workspace offers again: it is judged at another commit."""
        self._offers.pop(path, None)

    def _judge(self, path: str) -> bool:
        """Whether it is good; it is judged if it waits, or is of the circle."""
        self._under_way[path] = None
        good = True
        while self._under_way:
            at = next(reversed(self._under_way))
            if self._steps.waits(at) or (at == path and at in self._circle):
                above = self._above(at)
                if above is not None:
                    self._under_way[above] = None
                    continue
                found = self._judged(at)
                if isinstance(found, Needs):
                    self._hear(at, found.path)
                    continue
                good = found
            del self._under_way[at]
            if at not in self._circle:
                self._steps.stand((at,))
        return good

    def _judged(self, at: str) -> bool | Needs:
        """Whether one is good whose turn it is, or whom it needs. Who asks for one of the circle is of it."""
        self._asked = False
        found = self._steps.judge(at)
        if self._asked:
            self._join(at)
        return found

    def _hear(self, at: str, path: str) -> None:
        """Somebody's word is needed. One who waits for that of the other closes a circle: of both counts from then on
        what they offer."""
        if self._is_under_way(path):
            self._join(path, at)
        else:
            self._under_way[path] = None

    def _close(self) -> None:
        """Judges a circle until it comes to rest."""
        rounds, restless = 0, True
        given_up: set[str] = set()
        while restless:
            rounds, restless = rounds + 1, False
            for path in self._members():
                known = len(self._circle)
                good = self._judge(path)
                if good and not self._circle[path] and rounds > _FREE_ROUNDS:
                    given_up.add(path)
                    good = False
                restless |= good != self._circle[path] or len(self._circle) != known
                self._circle[path] = good
        members = [path for path in self._members() if path not in given_up]
        self._circle.clear()
        self._offers.clear()
        self._steps.stand(members)
        for path in sorted(given_up):
            self._steps.again(path)

    def _members(self) -> list[str]:
        return sorted(self._circle, key=paths.depth)

    def _join(self, *members: str) -> None:
        for path in members:
            self._circle.setdefault(path, True)

    def _is_under_way(self, path: str) -> bool:
        """Whether it, or what it stands in, is: a workspace is judged after the one above it."""
        return any(at in self._under_way for at in paths.upwards(path))

    def _above(self, path: str) -> str | None:
        """The uppermost workspace above that waits, and is not under way."""
        above, found = paths.parent(path), None
        while above is not None:
            if above not in self._under_way and above not in self._circle and self._steps.waits(above):
                found = above
            above = paths.parent(above)
        return found
