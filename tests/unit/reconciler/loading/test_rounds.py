"""One turn for each author a round, of an author the workspaces in turn, and turns of many authors together."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.loading.rounds import RoundSettings, next_round

SMALL = RoundSettings(writes=3, authors=2, apart=4, together=5)


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
    found = next_round(waiting(*[(f"sa{n}", "a") for n in range(5)] * 2, *[("late", "b")] * 3), SMALL)
    assert told([*found]) == ["sa0:a:1 sa0:a:6", "sa1:a:2 sa1:a:7", "late:b:11 late:b:12 late:b:13"]


def test_who_ask_for_little_in_one_workspace_count_as_one() -> None:
    found = next_round(waiting(*[(f"sa{n}", "a") for n in range(5)], ("late", "b")), SMALL)
    assert told([*found]) == ["sa0:a:1", "sa1:a:2", "sa2:a:3", "late:b:6"]


def test_of_many_authors_the_turns_are_few_commits() -> None:
    """Whoever asks for little is in the first of them, whatever others ask for."""
    few = [(f"u{n}", f"w{n}") for n in range(4)]
    found = next_round(waiting(*[("mallory", "m")] * 9, *few), SMALL)
    assert told([*found]) == [
        "u0:w0:10 u1:w1:11 u2:w2:12 u3:w3:13",
        "mallory:m:1 mallory:m:2 mallory:m:3",
    ]


def test_up_to_some_authors_have_a_commit_each() -> None:
    four = [(f"u{n}", f"w{n}") for n in range(4)]
    assert told([*next_round(waiting(*four), SMALL)]) == ["u0:w0:1", "u1:w1:2", "u2:w2:3", "u3:w3:4"]
    assert len([*next_round(waiting(*four, ("v", "w")), SMALL)]) == 1
    assert [*next_round([], SMALL)] == []


many = st.lists(st.tuples(st.sampled_from("uvwxyz"), st.sampled_from("abc")), max_size=40)


@given(many)
def test_everything_has_its_turn_and_nobody_waits_for_another_s_rest(who: list[tuple[str, str]]) -> None:
    """Served are all, each once; a write waits for as many rounds at most as its author's and its workspace's others
    fill. A commit of several is within its bound, and has what an author has in this round as a whole."""
    rest = waiting(*who)
    by_author, by_workspace = Counter(author for author, _ in who), Counter(cluster for _, cluster in who)
    for number in range(1, len(rest) + 2):
        commits = [*next_round(rest, SMALL)]
        served = {i.revision for commit in commits for i in commit}
        assert len(served) == sum(map(len, commits))
        assert served or not rest
        turns = [[*turn] for commit in commits for _, turn in groupby(commit, key=lambda i: i.author)]
        assert len({turn[0].author for turn in turns}) == len(turns)
        assert len(commits) == len(turns) if len(turns) <= SMALL.apart else len(commits) <= len(turns)
        for turn in turns:
            assert 1 <= len(turn) <= SMALL.writes
            assert turn == sorted(turn, key=lambda i: i.revision)
        assert all(len(commit) <= SMALL.together for commit in commits)
        authors = Counter(cluster for turn in turns for cluster in {i.key.cluster for i in turn})
        writes = Counter(i.key.cluster for turn in turns for i in turn)
        most = SMALL.writes + SMALL.writes - 1
        assert all(found <= SMALL.authors or writes[cluster] <= most for cluster, found in authors.items())
        rest = [i for i in rest if i.revision not in served]
        for intent in rest:
            assert number < by_author[intent.author] + by_workspace[intent.key.cluster]
    assert rest == []
