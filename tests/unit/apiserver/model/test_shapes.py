"""Paths, kinds, conditions, times and errors."""

import pytest

from apiserver.model import clock, conditions, errors, paths
from apiserver.model.kinds import split_api_version


def test_paths() -> None:
    assert paths.parent("root:a:b") == "root:a"
    assert paths.parent("root") is None
    assert paths.base("root:a") == "a"
    assert paths.is_path("root:a-1:b")
    assert not any(map(paths.is_path, ["", "root:", "Root", "root:a_b", "root:-a", "root:" + "a" * 64]))


def test_api_versions() -> None:
    assert split_api_version("v1") == ("", "v1")
    assert split_api_version("apps/v1") == ("apps", "v1")
    for text in ("", "a/b/c", "/v1", "apps/"):
        with pytest.raises(ValueError, match="unexpected GroupVersion"):
            split_api_version(text)


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = conditions.merged([], [conditions.condition("Ready", True, "A", at="1")])
    again = conditions.merged(first, [conditions.condition("Ready", True, "B", "more", at="2")])
    assert again[0]["lastTransitionTime"] == "1"
    assert again[0]["reason"] == "B"
    turned = conditions.merged(again, [conditions.condition("Ready", False, "C", at="3")])
    assert turned[0]["lastTransitionTime"] == "3"
    assert not conditions.is_true(turned, "Ready")


def test_conditions_are_sorted_and_others_stay() -> None:
    merged = conditions.merged([{"type": "Z", "status": "True"}], [conditions.condition("A", None)])
    assert [c["type"] for c in merged] == ["A", "Z"]
    assert merged[0]["status"] == "Unknown"


def test_times() -> None:
    assert clock.rfc3339(0) == "1970-01-01T00:00:00Z"
    assert clock.rfc3339(clock.parse("2026-01-31T13:00:00+01:00")) == "2026-01-31T12:00:00Z"
    with pytest.raises(ValueError, match="no time zone"):
        clock.parse("2026-01-31T12:00:00")


def test_errors_read_as_kubernetes_prints_them() -> None:
    assert errors.not_found("deployments", "apps", "x").as_status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'deployments.apps "x" not found',
        "reason": "NotFound",
        "details": {"name": "x", "group": "apps", "kind": "deployments"},
        "code": 404,
    }
    cause = errors.Cause("FieldValueRequired", "Required value", "spec.a")
    one = errors.invalid("Gadget", "z.io", "g", [cause])
    assert str(one) == 'Gadget.z.io "g" is invalid: spec.a: Required value'
    two = errors.invalid("Gadget", "z.io", "g", [cause, cause])
    assert str(two) == 'Gadget.z.io "g" is invalid: [spec.a: Required value, spec.a: Required value]'
    assert errors.unavailable("x", 3).as_status()["details"] == {"retryAfterSeconds": 3}


def test_conditions_are_appended_where_kubernetes_does() -> None:
    old = [conditions.condition(kind, True, "A", "a", at="t1") for kind in ("B", "A")]
    new = [conditions.condition(kind, True, "B", "b", at="t2") for kind in ("C", "A")]
    found = conditions.appended(old, new)
    assert [(c["type"], c["reason"], c["lastTransitionTime"]) for c in found] == [
        ("B", "A", "t1"),
        ("A", "B", "t1"),
        ("C", "B", "t2"),
    ]
