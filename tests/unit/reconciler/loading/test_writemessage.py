"""What the commit of writes says: of one author as ever, of several whose each is. No name says anything but itself."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.model.keys import Key
from apiserver.registry.intents import Intent
from reconciler.loading.writemessage import message
from reconciler.repository.desired import signature
from reconciler.repository.messages import one_line
from reconciler.repository.writtenby import written_by

DIGEST = "1" * 40


def wrote(user: str, name: str, cluster: str = "c1", resource: str = "configmaps") -> Intent:
    return Intent(Key(resource, cluster, "default", name), user, b"{}", 0)


def path_of(cluster: str) -> str:
    return f"root:{cluster}"


def said(*writes: Intent) -> str:
    return message(writes, path_of, set())


def test_of_one_author_it_is_as_ever() -> None:
    assert said(wrote("ann", "a")) == "Create configmaps default/a in root:c1\n"
    two = message([wrote("ann", "a"), wrote("ann", "b")], path_of, {DIGEST})
    assert two == (
        "Write 2 objects in root:c1\n\ncreate configmaps default/a\ncreate configmaps default/b\n\n"
        f"Allow-Delete: {DIGEST}\n"
    )


def test_of_several_each_write_and_each_author_is_named() -> None:
    found = said(wrote("ann", "a"), wrote("Bob <x@example.org>", "b", "c2", "toys.example.org:hash"))
    assert found == (
        "Write 2 objects for 2 users in 2 workspaces\n\n"
        "create configmaps default/a in root:c1\ncreate toys.example.org default/b in root:c2\n\n"
        "Written-By: root:c1 configmaps default/a ann\n"
        "Written-By: root:c2 toys.example.org default/b Bob <x@example.org>\n"
        "Co-authored-by: ann <ann@localhost>\n"
        "Co-authored-by: Bob x@example.org <Bob-x-example.org@localhost>\n"
    )


def test_all_writes_are_named_however_few_are_listed() -> None:
    found = said(*(wrote(f"u{number % 5}", f"n{number}") for number in range(256)))
    assert len(written_by(found)) == 256
    assert "\nand 206 more\n" in found
    assert found.count("\nCo-authored-by: ") == 5


NAMES = st.lists(
    st.sampled_from(["\n", "\r\n", "\n\n", "\x0b", "\x85", "\u2028", "\x1e", " ", "Allow-Delete: ", "Allow-Push: ",
                     f"\nWritten-By: root secrets x {'y' * 9}", "\nCo-authored-by: root <r@x>", "<", ">", "@", "---",
                     "#", "ann", "x@example.org"]) | st.text(max_size=20), max_size=8
).map("".join)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(NAMES, NAMES), min_size=2, max_size=4, unique_by=lambda each: each[0]))
def test_no_name_says_anything_but_itself(each: list[tuple[str, str]]) -> None:
    text = said(*(wrote(user, name) for user, name in each))
    parsed = subprocess.run(
        ["git", "interpret-trailers", "--parse"], input=text.encode(), capture_output=True, check=True
    )
    keys = [line.partition(":")[0] for line in parsed.stdout.decode().rstrip("\n").split("\n")]
    assert keys == ["Written-By"] * len(each) + ["Co-authored-by"] * len(each)
    assert [one.user for one in written_by(text)] == [one_line(user, 400) or "?" for user, _ in each]
    for user, _ in each:
        name, mail = signature(one_line(user, 400))
        assert f"\nCo-authored-by: {name} <{mail}>\n" in text


def test_a_name_that_has_no_end_is_cut() -> None:
    assert max(map(len, said(wrote("x" * 99_999, "a"), wrote("ann", "b")).splitlines())) < 1000
