"""Questions to conversion webhooks, and which answers count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from apiserver.registry.reviews import ConversionReview, Wrong

Object = dict[str, Any]


def obj(name: str, version: str = "v1", **metadata: Any) -> Object:
    return {"apiVersion": f"z.io/{version}", "kind": "W", "metadata": {"name": name, "uid": f"u-{name}", **metadata}}


def answered(
    review: ConversionReview, change: Callable[[Object], Any] = lambda found: None, **response: Any
) -> list[Object]:
    """As a webhook would that replaces the version; `change` then spoils the answer."""
    asked = orjson.loads(review.body())
    made = [{**o, "apiVersion": asked["request"]["desiredAPIVersion"]} for o in asked["request"]["objects"]]
    found = {
        "apiVersion": asked["apiVersion"],
        "kind": "ConversionReview",
        "response": {"uid": asked["request"]["uid"], "result": {"status": "Success"}, "convertedObjects": made,
                     **response},
    }  # fmt: skip
    change(found)
    return review.converted(orjson.dumps(found))


def test_the_question() -> None:
    asked = orjson.loads(ConversionReview([obj("a")], "z.io/v2", ["v7", "v1beta1", "v1"]).body())
    assert (asked["apiVersion"], asked["kind"]) == ("apiextensions.k8s.io/v1beta1", "ConversionReview")
    assert asked["request"]["desiredAPIVersion"] == "z.io/v2"
    assert asked["request"]["objects"] == [obj("a")]
    with pytest.raises(Wrong, match="no supported conversion review versions"):
        ConversionReview([obj("a")], "z.io/v2", ["v7"])


def test_only_labels_and_annotations_of_metadata_count() -> None:
    annotations = {"kcp.io/cluster": "c", "n": "1"}
    before = obj("a", labels={"x": "1"}, annotations=annotations, generation=3, finalizers=["f/f"])

    def change(found: Object) -> None:
        metadata = found["response"]["convertedObjects"][0]["metadata"]
        metadata.update(labels={"y": "2"}, annotations={"kcp.io/cluster": "other", "m": "2"}, generation=9)
        del metadata["finalizers"]

    [made] = answered(ConversionReview([before], "z.io/v2", ["v1"]), change)
    assert made["metadata"] == {
        **before["metadata"], "labels": {"y": "2"}, "annotations": {"m": "2", "kcp.io/cluster": "c"},
    }  # fmt: skip


def spoil(index: int = 0, **fields: Any) -> Callable[[Object], None]:
    def change(found: Object) -> None:
        made = found["response"]["convertedObjects"][index]
        for name, value in fields.items():
            if name in ("apiVersion", "kind"):
                made[name] = value
            else:
                made["metadata"] = {**made["metadata"], name: value}

    return change


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda f: f.update(apiVersion="apiextensions.k8s.io/v2"), "failed: expected webhook response of"),
        (lambda f: f.update(response=None), "failed: no response provided"),
        (lambda f: f["response"].update(uid="x"), 'failed: expected response.uid="'),
        (lambda f: f["response"].update(result={"status": "Failure", "message": "no way"}), "failed: no way"),
        (lambda f: f["response"].update(result={}), "failed: response.result.status was '', not 'Success'"),
        (lambda f: f["response"]["convertedObjects"].pop(), "returned 1 objects, expected 2"),
        (lambda f: f["response"].update(convertedObjects=None), "returned 0 objects, expected 2"),
        (spoil(1, apiVersion="z.io/v3"), "returned invalid converted object at index 1: invalid groupVersion"),
        (spoil(1, kind="V"), "returned invalid converted object at index 1: invalid kind (expected W, received V)"),
        (spoil(0, name="z"), "must have the same name: a != z"),
        (spoil(0, uid="z"), "must have the same UID: u-a != z"),
        (spoil(0, namespace="z"), "must have the same namespace:  != z"),
        (spoil(0, labels={"a": "b c"}), 'invalid metadata in object at index 0: metadata.labels: Invalid value: "b c"'),
        (spoil(0, annotations={"a b": ""}), 'index 0: metadata.annotation: Invalid value: "a b"'),
        (spoil(0, annotations={"a": 1}), "metadata.annotations[a] must be a string, but is int64 in converted object"),
        (spoil(0, labels=[]), "invalid metadata.labels of type []interface {} in converted object"),
        (lambda f: f["response"]["convertedObjects"][0].pop("metadata"), "must have the same name: a != "),
        (lambda f: f["response"]["convertedObjects"].__setitem__(0, 7), "it is not an object"),
    ],
)
def test_answers_that_are_none(change: Callable[[Object], Any], text: str) -> None:
    with pytest.raises(Wrong) as raised:
        answered(ConversionReview([obj("a"), obj("b")], "z.io/v2", ["v1"]), change)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (spoil(apiVersion="z.io/v3"),
         "returned invalid object at index 0: invalid groupVersion (expected z.io/v2, received z.io/v3)"),
        (spoil(kind="V"), "returned invalid object at index 0: invalid kind (expected W, received V)"),
        (spoil(name="z"), "returned invalid object: must have the same name: a != z"),
        (spoil(labels={"a": 1}),
         "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object"),
    ],
)  # fmt: skip
def test_of_one_object_they_are_said_otherwise(change: Callable[[Object], Any], text: str) -> None:
    with pytest.raises(Wrong) as raised:
        answered(ConversionReview([obj("a")], "z.io/v2", ["v1"]), change)
    assert str(raised.value) == text


def test_the_older_form_need_not_repeat_the_uid() -> None:
    made = answered(ConversionReview([obj("a")], "z.io/v2", ["v1beta1"]), uid="x")
    assert made[0]["apiVersion"] == "z.io/v2"


@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b"{}"])
def test_bodies_that_are_none(body: bytes) -> None:
    with pytest.raises(Wrong, match=r"^failed: "):
        ConversionReview([obj("a")], "z.io/v2", ["v1"]).converted(body)
