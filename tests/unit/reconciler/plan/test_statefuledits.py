"""What an edit takes from where it runs: told before it is carried out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model import marks
from reconciler.plan.statefuledits import PlacedContent, StateLoss, losses

Object = dict[str, Any]

WEB = {"matchLabels": {"app": "web"}}


def placement(name: str, target: str = "", *, selector: Any = WEB, where: Any = None, **annotations: str) -> Object:
    decided = {marks.SYNC_TARGET: f"key-{target}"} if target else {}
    return {
        "metadata": {"name": name, "annotations": {**decided, **annotations}},
        "spec": {"namespaceSelector": selector, "locationSelectors": [where or {}]},
        "status": {"syncTarget": {"path": "root:infra", "name": target}} if target else {},
    }


def content(*placements: Object, **namespaces: str) -> PlacedContent:
    """`web="web"`: namespace `web` with label app=web."""
    objects = [{"metadata": {"name": n, "labels": {"app": app}}} for n, app in namespaces.items()]
    return PlacedContent.of(placements, objects)


BEFORE = content(placement("prod", "west"), web="web", other="web")
LOST = [StateLoss("web", "prod", "key-west", "withdrawn")]
MOVED = [StateLoss("web", "prod", "key-west", "moved")]
LEAVE = {marks.MAY_LEAVE: "root:infra:west"}


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        (content(placement("prod"), web="web", other="web"), []),
        (content(placement("prod"), web="web", other="changed"), []),
        (content(placement("prod"), placement("more"), web="web"), []),
        (content(placement("prod"), web="changed"), LOST),
        (content(web="web"), LOST),
        (content(placement("renamed"), web="web"), LOST),
        (content(placement("prod", selector={"matchLabels": {"app": "no"}}), web="web"), LOST),
        (content(placement("prod", selector={}), web="changed"), []),
        (content(placement("prod", where={"matchLabels": {"region": "us"}}), web="web"), MOVED),
        (content(placement("prod", **LEAVE), web="web"), MOVED),
        (content(placement("prod", **{marks.MAY_LEAVE: "root:infra:east"}), web="web"), []),
        (content(placement("prod")), []),
    ],
    ids=[
        "nothing", "another namespace", "a second Placement", "its label", "its Placement's end",
        "its Placement's name", "its Placement's selector", "both, and still selected", "its locations",
        "leave to go", "leave to go from elsewhere", "its own end",
    ],
)  # fmt: skip
def test_what_an_edit_takes_away(after: PlacedContent, wanted: list[StateLoss]) -> None:
    assert losses(BEFORE, after, {"web"}) == wanted


def test_only_what_holds_state_and_runs_counts() -> None:
    assert losses(BEFORE, content(web="web"), ()) == []
    assert losses(content(placement("prod"), web="web"), content(web="web"), {"web"}) == []
    assert losses(content(placement("prod", "west", selector={}), **{"kube-system": "x"}),
                  content(**{"kube-system": "x"}), {"kube-system"}) == []  # fmt: skip


def test_a_target_that_another_placement_keeps_is_not_lost() -> None:
    before = content(placement("prod", "west"), placement("spare", "west"), placement("far", "east"), web="web")
    after = content(placement("spare"), web="web")
    assert losses(before, after, {"web"}) == [StateLoss("web", "far", "key-east", "withdrawn")]


CONTENTS = st.builds(
    lambda placements, labels: content(*placements, **labels),
    st.lists(
        st.builds(
            placement,
            st.sampled_from("abc"),
            st.sampled_from(["", "west", "east"]),
            selector=st.sampled_from([WEB, {}, {"matchLabels": {"app": "db"}}]),
            where=st.sampled_from([{}, {"matchLabels": {"region": "us"}}]),
        ),
        unique_by=lambda p: p["metadata"]["name"],
        max_size=3,
    ),
    st.dictionaries(st.sampled_from(["web", "db"]), st.sampled_from(["web", "db", "no"])),
)


@given(CONTENTS, CONTENTS)
def test_laws(before: PlacedContent, after: PlacedContent) -> None:
    both = {"web", "db"}
    assert losses(before, before, both) == []
    found = losses(before, after, both)
    assert sorted(found) == found
    assert {loss.namespace for loss in found} <= before.namespaces.keys() & after.namespaces.keys()
    for loss in found:
        assert [lost for lost in losses(before, after, {loss.namespace}) if lost not in found] == []
    taken = losses(before, PlacedContent({}, after.namespaces), both)
    assert {(loss.namespace, loss.target) for loss in found} <= {(loss.namespace, loss.target) for loss in taken}
