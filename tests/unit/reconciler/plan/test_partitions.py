"""A PartitionSet divides Shards by the values of their labels."""

from __future__ import annotations

from typing import Any

from reconciler.plan.partitions import partitions

Object = dict[str, Any]


def shard(name: str, **labels: str) -> Object:
    return {"metadata": {"name": name, "labels": labels}}


def partition_set(*dimensions: str, **spec: Any) -> Object:
    return {"metadata": {"name": "by"}, "spec": {"dimensions": list(dimensions), **spec}}


SHARDS = [
    shard("a", region="eu", cloud="x"),
    shard("b", region="eu", cloud="y"),
    shard("c", region="us", cloud="x"),
    shard("d", region="us", cloud="x"),
    shard("e", cloud="x"),
    {"metadata": {"name": "bare"}},
]


def labels(found: dict[str, Object]) -> list[Object]:
    return sorted((spec["selector"]["matchLabels"] for spec in found.values()), key=str)


def test_each_combination_of_values_is_one() -> None:
    found = partitions(partition_set("region", "cloud", "region"), SHARDS)
    assert labels(found) == [
        {"cloud": "x", "region": "eu"},
        {"cloud": "x", "region": "us"},
        {"cloud": "y", "region": "eu"},
    ]
    assert labels(partitions(partition_set("region"), SHARDS)) == [{"region": "eu"}, {"region": "us"}]


def test_only_what_the_selector_takes_is_divided_and_it_stays_part_of_each() -> None:
    expressions = [{"key": "region", "operator": "In", "values": ["eu"]}]
    chosen = {"matchLabels": {"cloud": "x"}, "matchExpressions": expressions}
    [spec] = partitions(partition_set("region", shardSelector=chosen), SHARDS).values()
    assert spec == {"selector": {"matchLabels": {"cloud": "x", "region": "eu"}, "matchExpressions": expressions}}
    assert partitions(partition_set("region", shardSelector={"matchLabels": {"cloud": "z"}}), SHARDS) == {}


def test_nothing_is_divided_by_nothing() -> None:
    assert partitions(partition_set(), SHARDS) == {}
    assert labels(partitions(partition_set(shardSelector={"matchLabels": {"cloud": "x"}}), SHARDS)) == [{"cloud": "x"}]


def test_names_say_the_values_and_differ_where_these_read_alike() -> None:
    alike = [shard("a", region="EU_1"), shard("b", region="eu.1"), shard("c", region="")]
    names = sorted(partitions(partition_set("region"), alike))
    assert len(set(names)) == 3
    assert [name.rpartition("-")[0] for name in names].count("by-eu-1") == 2
    assert names == sorted(partitions(partition_set("region"), reversed(alike)))
