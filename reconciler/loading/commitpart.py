"""What is to be one commit of writes that wait, and what becomes of it where it cannot be one.

Made by the committer of what a round has together. Nobody's write costs another's: whoever has to do with the trouble
is tried by himself, behind all others, so he has these judged once more at most; where it cannot be told who that is,
each half is tried, and one bad write among n costs some 2 log n judgements. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.loading.writemessage import authors

TRIES = 5
"""How often one part is tried."""


@dataclass(frozen=True, slots=True)
class CommitPart:
    """`tries`: how often it was tried in vain."""

    intents: Sequence[Intent]
    tries: int = 0

    @property
    def author(self) -> str | None:
        """None where several have a share in it."""
        who = authors(self.intents)
        return who[0] if len(who) == 1 else None

    @property
    def is_shared(self) -> bool:
        return self.author is None

    def once_more(self) -> list[CommitPart]:
        """The same; nothing once that was tried often enough."""
        return [replace(self, tries=self.tries + 1)] if self.intents and self.tries + 1 < TRIES else []

    def halves(self) -> list[CommitPart]:
        """An author's writes stay together as long as that can be."""
        who = authors(self.intents)
        if len(who) > 1:
            some = {*who[: len(who) // 2]}
            halves = [[i for i in self.intents if (i.author in some) is wanted] for wanted in (True, False)]
        else:
            half = len(self.intents) // 2
            halves = [[*self.intents[:half]], [*self.intents[half:]]]
        return [CommitPart(each) for each in halves if each]

    def without(self, out: Collection[str], suspects: Collection[Key]) -> list[CommitPart]:
        """Of one in which several have a share: the others, then each half of the suspects, then each of `out` by
        himself."""
        others = [i for i in self.intents if i.author not in out and i.key not in suspects]
        found = [replace(self, intents=others)] if others else []
        doubtful = [i for i in self.intents if i.author not in out and i.key in suspects]
        found += CommitPart(doubtful).halves()
        return found + [
            CommitPart([i for i in self.intents if i.author == each]) for each in authors(self.intents) if each in out
        ]
