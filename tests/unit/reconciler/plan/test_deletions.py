"""The rules of what a commit may take away, on lines alone."""

from __future__ import annotations

import hashlib

import pytest

from reconciler.plan.deletions import Limits, Line, Loss, RefusedDeletion, command, copies_told, digest, refusal


def losses(count: int, **more: object) -> list[Loss]:
    return [Loss(Line("root:a", "configmaps", "default", f"c{n:03}"), **more) for n in range(count)]  # type: ignore[arg-type]


def test_the_hash_is_of_the_sorted_lines() -> None:
    lines = [Line("root:a", "namespaces", "", "shop"), Line("root:a", "deployments.apps", "shop", "web")]
    text = b"root:a deployments.apps shop/web\nroot:a namespaces /shop\n"
    assert digest(lines) == digest(reversed(lines)) == hashlib.sha256(text).hexdigest()[:40]


@pytest.mark.parametrize("name", ["x\nroot:a configmaps default/app", "x\\ny", "x\x85y", "x y"])
def test_names_with_line_breaks_are_no_other_lines(name: str) -> None:
    line = Line("root:a", "clusterroles.rbac.authorization.k8s.io", "", name)
    assert len(str(line).splitlines()) == 1
    others = [Line("root:a", line.resource, "", "x"), Line("root:a", "configmaps", "default", "app")]
    also = Line("root:a", line.resource, "", name.encode("unicode_escape").decode())
    assert len({digest([line]), digest(others), *([digest([also])] if also != line else [])}) == 3 - (also == line)


@pytest.mark.parametrize(
    ("count", "total", "why"),
    [
        (100, 1000, ""),
        (101, 1000, "spec.safety.maxDeletedObjects allows 100 in one commit"),
        (9, 9, ""),
        (10, 34, ""),
        (10, 33, "spec.safety.maxDeletedShare allows 30 % of its 33 objects in one commit"),
        (0, 0, ""),
    ],
)
def test_many_have_to_be_allowed(count: int, total: int, why: str) -> None:
    assert refusal(losses(count), total, Limits()) == why


def test_what_is_free_does_not_count() -> None:
    assert refusal([*losses(100), *losses(50, free=True)], 1000, Limits()) == ""
    assert refusal(losses(2, free=True, protected="it has objects"), 2, Limits()) == ""


def test_what_is_protected_has_to_be_allowed_by_itself() -> None:
    kept = Loss(Line("root:a", "namespaces", "", "shop"), "it has objects")
    assert refusal([kept], 1000, Limits()) == "namespaces /shop is protected: it has objects"
    assert refusal([kept, kept], 1000, Limits()) == "namespaces /shop and 1 more is protected: it has objects"


def test_the_limits_are_the_fleets() -> None:
    assert refusal(losses(3), 1000, Limits(objects=2)) == "spec.safety.maxDeletedObjects allows 2 in one commit"
    assert refusal(losses(0), 1000, Limits(objects=0)) == ""
    assert refusal(losses(50), 51, Limits(share=100)) == ""


def test_the_whole_command_is_told() -> None:
    text = str(RefusedDeletion(tuple(losses(1)), "it is said so"))
    assert text.startswith("1 object would be deleted, and it is said so. They are: root:a configmaps default/c000. ")
    name = digest(loss.line for loss in losses(1))
    assert text.endswith(f"git commit --allow-empty -m 'Allow deletion' -m 'Allow-Delete: {name}'")
    assert command(["a", "b"]).endswith("-m 'Allow-Delete: a b'")


def test_a_copy_is_told_apart_from_its_object() -> None:
    line = Line("root:a", "persistentvolumeclaims", "web", "data")
    copy = line._replace(copy=True)
    assert digest([line]) != digest([copy])
    refused = RefusedDeletion((Loss(line), Loss(copy), Loss(copy._replace(name="more"))), "it is said so")
    assert str(refused).startswith("1 object and 2 copies on clusters would be deleted, and it is said so. They are: ")
    assert [*copies_told([str(refused), "another error (copy)"])] == [copy, copy._replace(name="more")]
    assert str(RefusedDeletion((Loss(copy),), "x")).startswith("1 copy on a cluster would be deleted, and x. ")


def test_long_lists_are_cut_where_they_are_not_asked_for() -> None:
    refused = RefusedDeletion(tuple(losses(25)), "x")
    assert "; and 5 more. " in str(refused)
    assert len(refused.lines()) == 25
