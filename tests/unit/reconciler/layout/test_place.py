"""Files for objects that have none."""

from __future__ import annotations

import pytest

from reconciler.layout.place import file_name, folder, place

A = "workspaces/root/a"


def test_an_object_has_a_file_by_namespace_resource_and_name() -> None:
    assert place(folder(A, "deployments.apps", "shop"), "web") == f"{A}/_objects/shop/deployments.apps/web.yaml"
    assert folder(A, "namespaces", "") == f"{A}/_objects/_cluster/namespaces"


def test_a_crowded_folder_is_spread_by_name() -> None:
    found = {place("f", f"n{i}", crowded=True).split("/")[1] for i in range(2000)}
    assert len(found) == 256
    assert all(name.endswith("_") for name in found), "no workspace is called so"


ODD = ["workspace", ".git", "..", "a/b", "A", "system:x", "x" * 253, "é", ".treeplaneignore"]


@pytest.mark.parametrize("name", ODD)
def test_names_that_git_or_the_layout_would_take_for_something_else(name: str) -> None:
    made = file_name(name)
    assert made != "workspace"
    assert not made.startswith(".")
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-%ABCDEF")
    assert len(made) < 240


def test_no_two_names_share_a_file() -> None:
    names = ["a", "A", "a.b", "a-b", "a:b", "a%3Ab", "x" * 250 + "1", "x" * 250 + "2"]
    assert len({file_name(n).lower() for n in names}) == len(names)
