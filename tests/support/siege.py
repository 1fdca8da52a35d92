"""What one tenant does to a pair of servers that differ in what another has, and what is looked at each time."""

from __future__ import annotations

import re
from urllib.parse import unquote

from support.ground import Foreign, Ground, World, drawn_alike, level, normal
from support.tenancy import Got, Sent

SETTLE = "controllers do what there is to do"
_CANARY = re.compile(r"zq[a-z]+q7[pr]")
_TOKEN = re.compile(rb'"continue":"([^"]+)"')
_REVISION = re.compile(rb'"resourceVersion":"([1-9]\d*)"')


class Siege:
    """What ann does to both servers of a pair, and what is looked at after each of her requests."""

    def __init__(self, ground: Ground, *, shared: bool) -> None:
        self.foreign = ground.known(shared)
        self.worlds = ground.pair(shared)
        self._first = self.worlds[0].bees()
        self._said = ""
        self._last = {"continue": "x", "revision": "1"}

    def close(self) -> None:
        for world in self.worlds:
            world.close()

    def step(self, number: int, step: Sent | str) -> int:
        """The status of the answers, if it is a request."""
        if isinstance(step, str):
            self._settle(number)
            return 0
        if step.watches:
            self._settle(number)
        status = self._ask(number, step)
        if step.watches:  # bea wrote meanwhile, and that has effects
            for world in self.worlds:
                world.settle()
            level(self.worlds)
        self._even()
        return status

    def _settle(self, number: int) -> None:
        for world in self.worlds:
            with drawn_alike(number):
                world.settle()
        self._even()

    def _even(self) -> None:
        """What bea has is no reason for ann's server to write more, or less."""
        first, second = (world.store.revision() for world in self.worlds)
        assert first == second, f"{first - second} revisions more where bea is"

    def _ask(self, number: int, step: Sent) -> int:
        for what, value in self._last.items():
            step = step._replace(query=step.query.replace(f"{{{what}}}", value))
        self._said += text_of(step)
        found: list[Got] = []
        for world in self.worlds:
            before = world.store.revision()
            with drawn_alike(number):
                found.append(world.asked(step))
            self._untouched(world, before, step)
        assert normal(found[0]) == normal(found[1]), step
        assert leaked(found[0], self.foreign, self._said) == set(), (step, found[0])
        for what, pattern in (("continue", _TOKEN), ("revision", _REVISION)):
            if match := pattern.search(found[0].body):
                self._last[what] = match[1].decode()
        return found[0].status

    def _untouched(self, world: World, before: int, step: Sent) -> None:
        if world.foreign is None or step.watches:  # bea herself writes meanwhile
            return
        clusters = world.foreign.clusters.values()
        assert [c.key for c in world.store.changes(before) if c.key.cluster in clusters] == [], step

    def check(self) -> None:
        assert self.worlds[0].bees() == self._first


def text_of(sent: Sent) -> str:
    text = f"{sent.path} {sent.query} {sent.headers} {sent.body.decode()}"
    return f"{text} {unquote(text)}".lower()


def leaked(got: Got, foreign: Foreign, said: str) -> set[str]:
    """Words of bea's in an answer that nobody had said."""
    text = f"{got.headers!r} {got.body.decode('latin-1')}".lower()
    found = {word for word in foreign.canaries if word in text} | set(_CANARY.findall(text))
    return {word for word in found if word not in said}
