"""Whose writes become commits next: one turn for each author a round.

Called by the committer with all that waits. A turn is one commit by one author, and a short one: who asks for much gets
as many turns as it takes, each behind everybody else's. Of an author the workspaces take turns, so that nobody's
ten thousand objects in one workspace keep his others waiting; by workspace alone, the owner of a hundred thousand would
have a hundred thousand turns. Nor has a workspace many for the ServiceAccounts that its tenant may make in it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice, zip_longest

from apiserver.registry.intents import Intent


@dataclass(frozen=True, slots=True)
class RoundSettings:
    """`writes`: in a turn, at most. `authors`: of one workspace that have a turn in the same round, at most."""

    writes: int = 128
    authors: int = 8


def next_round(waiting: Iterable[Intent], settings: RoundSettings = RoundSettings()) -> Iterator[list[Intent]]:
    """The turns of one round, each in the order in which its writes were asked for. Who asks for least is first, of
    those who ask for the same he who asked first."""
    by_author: dict[str, dict[str, list[Intent]]] = defaultdict(lambda: defaultdict(list))
    for intent in sorted(waiting, key=_age):
        by_author[intent.author][intent.key.cluster].append(intent)
    authors: Counter[str] = Counter()
    for asked in sorted(by_author.values(), key=_much):
        free = [intents for cluster, intents in asked.items() if authors[cluster] < settings.authors]
        turn = sorted(islice(_in_turn(free), settings.writes), key=_age)
        authors.update({intent.key.cluster for intent in turn})
        if turn:
            yield turn


def _in_turn(workspaces: Iterable[list[Intent]]) -> Iterator[Intent]:
    """The first of each, then the second of each."""
    return filter(None, chain.from_iterable(zip_longest(*workspaces)))


def _much(asked: dict[str, list[Intent]]) -> tuple[int, int]:
    return sum(map(len, asked.values())), min(_age(intents[0]) for intents in asked.values())


def _age(intent: Intent) -> int:
    return intent.revision
