"""Whose writes become commits next: one turn for each author a round, and turns of many authors together.

Called by the committer with all that waits. A turn is short: who asks for much gets as many turns as it takes, each
behind everybody else's. Of an author the workspaces take turns, so that nobody's ten thousand objects in one workspace
keep his others waiting; by workspace alone, the owner of a hundred thousand would have a hundred thousand turns. Nor
has a workspace many for the ServiceAccounts that its tenant may make in it: they have a bound of turns, or all that one
author might ask for.

A commit costs much, and what is in it little. So each turn is a commit while few wait, and of many authors as many
turns are one as fit into a bound, in the order of the turns: how long a commit takes follows from what is in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from apiserver.registry.intents import Intent


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """`writes`: in a turn, at most. `authors`: of one workspace that have a turn in the same round, at most, unless all
    of them ask for less than `writes`. `apart`: so many authors have a commit each; of more the turns are `together`
    writes in a commit, at most."""

    writes: int = 128
    authors: int = 8
    apart: int = 4
    together: int = 256


def next_round(waiting: Iterable[Intent], settings: RoundSettings = RoundSettings()) -> Iterator[list[Intent]]:
    """The commits of one round: turns, or several turns one behind the other."""
    turns = [*_turns(waiting, settings)]
    if len(turns) <= settings.apart:
        yield from turns
        return
    together: list[Intent] = []
    for turn in turns:
        if together and len(together) + len(turn) > settings.together:
            yield together
            together = []
        together = [*together, *turn]
    yield together


def _turns(waiting: Iterable[Intent], settings: RoundSettings) -> Iterator[list[Intent]]:
    """Each in the order in which its writes were asked for. Who asks for least is first, of those who ask for the same
    he who asked first."""
    by_author: dict[str, dict[str, list[Intent]]] = defaultdict(lambda: defaultdict(list))
    for intent in sorted(waiting, key=_age):
        by_author[intent.author][intent.key.cluster].append(intent)
    authors, writes = Counter[str](), Counter[str]()
    for asked in sorted(by_author.values(), key=_much):
        free = [
            intents
            for cluster, intents in asked.items()
            if authors[cluster] < settings.authors or writes[cluster] < settings.writes
        ]
        turn = sorted(islice(_in_turn(free), settings.writes), key=_age)
        authors.update({intent.key.cluster for intent in turn})
        writes.update(intent.key.cluster for intent in turn)
        if turn:
            yield turn


def _in_turn(workspaces: Iterable[list[Intent]]) -> Iterator[Intent]:
    """The first of each, then the second of each."""
    return filter(None, chain.from_iterable(zip_longest(*workspaces)))


def _much(asked: dict[str, list[Intent]]) -> tuple[int, int]:
    return sum(map(len, asked.values())), min(_age(intents[0]) for intents in asked.values())


def _age(intent: Intent) -> int:
    return intent.revision
