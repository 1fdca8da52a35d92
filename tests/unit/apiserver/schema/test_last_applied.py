"""An apply by kubectl over what a client-side apply left behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apiserver.model.errors import StatusError
from apiserver.schema.last_applied import ANNOTATION
from apiserver.schema.ownership import ApplyOptions, apply, record_update
from apiserver.schema.structural import Schema

T1, T2 = "2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"
Json = dict[str, Any]


def gadget_of(labels: Json, **spec: Any) -> Json:
    return {"apiVersion": "z.io/v1", "kind": "Gadget", "metadata": {"name": "g", "labels": labels}, "spec": spec}


def client_side(gadget: Schema, labels: Json, **spec: Any) -> Json:
    obj = gadget_of(labels, **spec)
    obj["metadata"]["annotations"] = {ANNOTATION: json.dumps(gadget_of(labels, **spec))}
    record_update(None, obj, gadget, "kubectl-client-side-apply", "z.io/v1", T1)
    return obj


def applied(live: Json, manifest: Json, gadget: Schema, manager: str = "kubectl") -> Json:
    return apply(live, manifest, gadget, ApplyOptions(manager, False, "z.io/v1", T2, "", ("status",)))


def last(obj: Json) -> Any:
    return json.loads(obj["metadata"]["annotations"][ANNOTATION])


def test_kubectl_takes_over_what_it_applied_client_side_and_says_so_in_the_annotation(gadget: Schema) -> None:
    live = client_side(gadget, {"a": "1"}, size=1)
    new = gadget_of({"a": "2"}, size=1)
    result = applied(live, new, gadget)
    assert result["metadata"]["labels"] == {"a": "2"}
    assert last(result) == new
    assert result["metadata"]["annotations"][ANNOTATION].endswith("}\n")
    assert applied(result, new, gadget) == result


def test_no_other_manager_may(gadget: Schema) -> None:
    live = client_side(gadget, {"a": "1"})
    with pytest.raises(StatusError, match='conflict with "kubectl-client-side-apply"'):
        applied(live, gadget_of({"a": "2"}), gadget, "somebody")


def test_what_was_changed_since_is_refused_and_named_alone(gadget: Schema) -> None:
    live = client_side(gadget, {"a": "1", "b": "1"})
    changed = {**live, "metadata": {**live["metadata"], "labels": {"a": "1", "b": "5"}}}
    record_update(live, changed, gadget, "editor", "z.io/v1", T1)
    with pytest.raises(StatusError) as refused:
        applied(changed, gadget_of({"a": "2", "b": "2"}), gadget)
    assert refused.value.message.startswith('Apply failed with 1 conflict: conflict with "editor"')


@pytest.mark.parametrize("annotation", ["", "no json", "[]", '{"apiVersion": "z.io/v2", "kind": "Gadget"}'])
def test_an_annotation_that_says_nothing_yields_nothing(gadget: Schema, annotation: str) -> None:
    live = client_side(gadget, {"a": "1"})
    live["metadata"]["annotations"][ANNOTATION] = annotation
    with pytest.raises(StatusError, match="Apply failed"):
        applied(live, gadget_of({"a": "2"}), gadget)


def test_without_an_annotation_none_is_made(gadget: Schema) -> None:
    assert "annotations" not in applied(gadget_of({}), gadget_of({"a": "2"}), gadget)["metadata"]


def test_an_annotation_that_would_be_too_long_goes(gadget: Schema) -> None:
    live = client_side(gadget, {"a": "1"})
    new = gadget_of({"a": "1"})
    new["metadata"]["annotations"] = {"long": "x" * (150 * 1024)}
    assert ANNOTATION not in applied(live, new, gadget)["metadata"]["annotations"]
