"""One turn for each author a round, and of an author the workspaces in turn."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.loading.rounds import RoundSettings, next_round

SMALL = RoundSettings(writes=3, authors=2)


def asked(author: str, cluster: str, revision: int) -> Intent:
    key = Key("configmaps", cluster, "default", f"c{revision}")
    return Intent(key, author, b"{}", 0, revision=revision)


def waiting(*who: tuple[str, str]) -> list[Intent]:
    """Authors and workspaces, oldest first."""
    return [asked(author, cluster, n + 1) for n, (author, cluster) in enumerate(who)]


def told(turns: list[list[Intent]]) -> list[str]:
    return [" ".join(f"{i.author}:{i.key.cluster}:{i.revision}" for i in turn) for turn in turns]


def test_who_asks_for_little_is_before_who_asks_for_much() -> None:
    found = next_round(waiting(*[("mallory", "m")] * 5, ("alice", "a"), ("bob", "b")), SMALL)
    assert told([*found]) == ["alice:a:6", "bob:b:7", "mallory:m:1 mallory:m:2 mallory:m:3"]


def test_an_author_s_workspaces_take_turns() -> None:
    found = next_round(waiting(*[("owner", "a")] * 5, ("owner", "b"), ("owner", "c")), SMALL)
    assert told([*found]) == ["owner:a:1 owner:b:6 owner:c:7"]


def test_a_workspace_has_no_more_turns_for_all_its_service_accounts() -> None:
    found = next_round(waiting(*[(f"sa{n}", "a") for n in range(5)], ("late", "b")), SMALL)
    assert told([*found]) == ["sa0:a:1", "sa1:a:2", "late:b:6"]


many = st.lists(st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("abc")), max_size=40)


@given(many)
def test_everything_has_its_turn_and_nobody_waits_for_another_s_rest(who: list[tuple[str, str]]) -> None:
    """Served are all, each once; a write waits for as many rounds at most as its author's and its workspace's others
    fill."""
    rest = waiting(*who)
    by_author, by_workspace = Counter(author for author, _ in who), Counter(cluster for _, cluster in who)
    for number in range(1, len(rest) + 2):
        turns = [*next_round(rest, SMALL)]
        served = {i.revision for turn in turns for i in turn}
        assert len(served) == sum(map(len, turns))
        assert served or not rest
        for turn in turns:
            assert len({i.author for i in turn}) == 1 <= len(turn) <= SMALL.writes
            assert turn == sorted(turn, key=lambda i: i.revision)
        authors = Counter(cluster for turn in turns for cluster in {i.key.cluster for i in turn})
        assert all(found <= SMALL.authors for found in authors.values())
        rest = [i for i in rest if i.revision not in served]
        for intent in rest:
            assert number < by_author[intent.author] + by_workspace[intent.key.cluster]
    assert rest == []
