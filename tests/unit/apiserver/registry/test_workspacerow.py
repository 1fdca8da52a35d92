"""Where workspaces stand, as their rows say it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from apiserver.registry.workspacerow import Shortening, expanded, shortened

names = st.sampled_from(["root", "a", "b", "ab", "7f", "x"])
directories = st.one_of(
    st.lists(names, max_size=6).map(lambda found: "/".join(["workspaces", *found])),
    st.lists(names, min_size=1, max_size=3).map(lambda found: "/".join(["fleets", "workspaces", *found])),
)


@given(st.lists(names, max_size=2), names, st.lists(directories, min_size=1, max_size=4), st.booleans())
@example([], "x", ["workspaces/root/7f"], True)
@example([], "a", ["workspaces/root/a"], True)
@example(["a"], "b", ["workspaces/root"], True)
def test_siblings_directories_are_shortened_as_each(
    above: list[str], name: str, around: list[str], by_name: bool
) -> None:
    parent = ":".join(["root", *above])
    shortening = Shortening(parent)
    for each in around:
        for directory in (f"{each}/{name if by_name else 'other'}", f"{each}/{'/'.join(above)}/{name}"):
            short = shortening.of(name, directory)
            assert short == shortened(f"{parent}:{name}", directory)
            assert expanded(f"{parent}:{name}", short) == directory
