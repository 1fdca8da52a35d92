"""Selectors as clients write them, in lists and in watches, against an evaluation that is as plain as can be."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apiserver.model.selectors import parse_labels
from apiserver.storage.protocol import Delete

MAPS = "/clusters/root:select/api/v1/configmaps"
SELECT = "selectcluster000"
EDGE = "/targets/root:edge"

KEYS = st.sampled_from(["app", "in", "notin", "exists", "x.io/app", "a-b_c.d", "n"])
VALUES = st.sampled_from(["", "a", "in", "notin", "A.b_c-d", "7", "12", "07", "app"])
LABELS = st.dictionaries(KEYS, VALUES, max_size=4)
BLANK = st.sampled_from(["", " ", "  "])

Requirement = tuple[str, str, list[str]]

REQUIREMENTS = st.one_of(
    st.tuples(KEYS, st.sampled_from(["=", "==", "!="]), VALUES.map(lambda v: [v])),
    st.tuples(KEYS, st.sampled_from(["in", "notin"]), st.lists(VALUES, min_size=1, max_size=3)),
    st.tuples(KEYS, st.sampled_from(["exists", "!"]), st.just([])),
    st.tuples(KEYS, st.sampled_from([">", "<"]), st.sampled_from([["7"], ["10"]])),
)


@st.composite
def selectors(draw: st.DrawFn) -> tuple[str, list[Requirement]]:
    """A text and what it means. Blanks may stand wherever they mean nothing."""
    found = draw(st.lists(REQUIREMENTS, min_size=1, max_size=3))
    return ",".join(draw(written(one)) for one in found), found


@st.composite
def written(draw: st.DrawFn, requirement: Requirement) -> str:
    key, operator, values = requirement

    def gap() -> str:
        return draw(BLANK)

    match operator:
        case "exists":
            return f"{gap()}{key}{gap()}"
        case "!":
            return f"{gap()}!{gap()}{key}{gap()}"
        case "in" | "notin":
            inner = ",".join(f"{gap()}{value}{gap()}" for value in values)
            return f"{gap()}{key} {gap()}{operator}{gap()}({inner}){gap()}"
    return f"{gap()}{key}{gap()}{operator}{gap()}{values[0]}{gap()}"


def holds(requirement: Requirement, labels: dict[str, str]) -> bool:
    key, operator, values = requirement
    value = labels.get(key)
    if operator in ("=", "==", "in"):
        return value in values
    if operator in ("!=", "notin"):
        return value not in values
    if operator in ("exists", "!"):
        return (value is not None) == (operator == "exists")
    if value is None or not value.isdigit():
        return False
    return int(value) > int(values[0]) if operator == ">" else int(value) < int(values[0])


@settings(max_examples=500)
@given(selectors(), LABELS)
def test_texts_mean_what_they_say(selector: tuple[str, list[Requirement]], labels: dict[str, str]) -> None:
    text, requirements = selector
    assert parse_labels(text).matches(labels) == all(holds(one, labels) for one in requirements)


@settings(max_examples=120, suppress_health_check=list(HealthCheck))
@given(
    objects=st.lists(st.tuples(st.sampled_from(["n", "o"]), LABELS), max_size=6),
    selector=st.one_of(st.just(("", [])), selectors()),
    fields=st.lists(
        st.tuples(st.sampled_from(["name", "namespace"]), st.sampled_from(["=", "==", "!="]),
                  st.sampled_from(["m0", "m1", "n", "o", "x,y", ""])),
        max_size=2,
    ),
)  # fmt: skip
def test_lists_hold_what_matches(api: Any, objects: Any, selector: Any, fields: Any) -> None:
    """The bytes of an object may rule it out before it is read; never wrongly."""
    api.put_workspace("root:select", SELECT)
    for record in api.store.scan("configmaps", SELECT).records:
        api.store.write(Delete(record.key)).result(10)
    there = {(namespace, f"m{i}"): labels for i, (namespace, labels) in enumerate(objects)}
    if there:
        trap = {"k": '"app":"a"', "app": "a"}  # looks like labels
        api.put(*(api.manifest("v1 ConfigMap", name, ns, SELECT, labels=labels, data=trap)
                  for (ns, name), labels in there.items()))  # fmt: skip
    text, requirements = selector
    expected = sorted(
        name
        for (namespace, name), labels in there.items()
        if all(holds(one, labels) for one in requirements)
        and all(
            ((name if field == "name" else namespace) == value) == (operator != "!=")
            for field, operator, value in fields
        )
    )
    escaped = [(field, operator, value.replace(",", r"\,")) for field, operator, value in fields]
    asked = ",".join(f"metadata.{field}{operator}{value}" for field, operator, value in escaped)
    query = f"labelSelector={quote(text)}&fieldSelector={quote(asked)}"

    async def scenario() -> None:
        reply = await api.get(f"{MAPS}?{query}")
        assert reply.status == 200, reply.json
        assert sorted(item["metadata"]["name"] for item in reply.json["items"]) == expected
        watch = api.watch(f"{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                          f"&allowWatchBookmarks=true&{query}")  # fmt: skip
        found = []
        while (event := await watch.next())["type"] != "BOOKMARK":
            found.append(event["object"]["metadata"]["name"])
        assert sorted(found) == expected
        await watch.leave()

    asyncio.run(scenario())


def test_many_values_cost_no_more_than_few(api: Any, run: Any) -> None:
    """Each value looked for in each object's bytes would take a minute."""
    big = {f"k{i}": "x" * 100_000 for i in range(10)}
    api.put(*(api.manifest("v1 ConfigMap", f"m{i}", "n", labels={"a": str(i)}, data=big) for i in range(5)))
    many = ",".join(map(str, range(3, 20_000)))
    reply = run(api.get(f"/api/v1/namespaces/n/configmaps?labelSelector=a+in+({many})"))
    assert [item["metadata"]["name"] for item in reply.json["items"]] == ["m3", "m4"]


@pytest.mark.parametrize(
    ("path", "selector", "told"),
    [
        ("/api/v1/configmaps", "data.x=1",
         '"data.x" is not a known field selector: only "metadata.name", "metadata.namespace"'),
        ("/api/v1/secrets", "data.x=1", "field label not supported: data.x"),
        ("/apis/tenancy.kcp.io/v1alpha1/workspaces", "spec.cluster=x", "field label not supported: spec.cluster"),
        ("/apis/tenancy.kcp.io/v1alpha1/workspaces", "metadata.namespace=x",
         "field label not supported: metadata.namespace"),
        ("/api/v1/namespaces", "metadata.namespace=x", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("watch", ["0", "1"])
def test_a_field_that_cannot_be_selected_is_refused_in_kubernetes_words(
    api: Any, run: Any, path: str, selector: str, told: str, watch: str
) -> None:
    query = f"fieldSelector={quote(selector)}&timeoutSeconds=1"
    found = run(api.get(f"/clusters/root{path}?{query}&watch={watch}"))
    assert (found.status, found.json["message"] if told else "") == (400 if told else 200, told)


def test_a_jobs_is_refused_in_its_own(api: Any, run: Any) -> None:
    found = run(api.get(f"{EDGE}/apis/batch/v1/jobs?fieldSelector=status.active%3D1"))
    assert (found.status, found.message) == (400, 'field label "status.active" not supported for Job')
