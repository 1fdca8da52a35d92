"""Selectors: Kubernetes' syntax, and the parsed form against a naive evaluation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model.errors import StatusError
from apiserver.model.selectors import NOTHING, Requirement, from_object, parse_fields, parse_labels

LABELS = {"app": "web", "tier": "front", "example.io/size": "10"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("missing!=web", True),
        ("app in (web, api)", True),
        ("app notin (web,api)", False),
        ("missing notin (a)", True),
        ("app", True),
        ("!app", False),
        ("!missing", True),
        ("example.io/size>9", True),
        ("example.io/size<9", False),
        ("app=web,tier=front", True),
        ("app=web,tier=back", False),
        ("app=", False),
    ],
)
def test_labels(text: str, expected: bool) -> None:
    assert parse_labels(text).matches(LABELS) is expected


@pytest.mark.parametrize("text", ["app in web", "=a", "a=b=c", "a b", "-x=1", "a in (b", "a=b,", "/x=1"])
def test_label_errors(text: str) -> None:
    if text == "a=b,":
        assert parse_labels(text).matches({"a": "b"})
        return
    with pytest.raises(StatusError) as error:
        parse_labels(text)
    assert error.value.code == 400


def test_an_absent_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert from_object(None) is NOTHING
    assert not from_object(None).matches({})
    assert from_object({}).matches({})


def test_match_expressions() -> None:
    selector = from_object(
        {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}],
        }
    )
    assert selector.matches(LABELS)
    assert not selector.matches({**LABELS, "tier": "back"})


def test_fields() -> None:
    assert [(r.path, r.value, r.equal) for r in parse_fields("metadata.name=a,status.phase!=Running")] == [
        ("metadata.name", "a", True),
        ("status.phase", "Running", False),
    ]
    assert parse_fields(r"metadata.name=a\,b")[0].value == "a,b"
    assert parse_fields("metadata.name=a,") == parse_fields(",metadata.name=a") == parse_fields("metadata.name=a")
    assert parse_fields(",") == parse_fields("") == ()
    with pytest.raises(StatusError):
        parse_fields("metadata.name")


names = st.sampled_from(["a", "b", "c"])


@given(st.dictionaries(names, names), names, st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]), st.sets(names))
def test_requirements_against_their_definition(
    labels: dict[str, str], key: str, operator: str, values: set[str]
) -> None:
    naive = {
        "In": labels.get(key) in values if key in labels else False,
        "NotIn": labels.get(key) not in values if key in labels else True,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }[operator]
    assert Requirement(key, operator, frozenset(values)).matches(labels) is naive
