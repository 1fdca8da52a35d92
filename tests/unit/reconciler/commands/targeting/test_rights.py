"""The rights on a cluster are said once, and docs/targets.md shows them."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from apiserver.model.kinds import GroupResource
from apiserver.registry.kinds import kubernetes_builtins
from reconciler.commands.targeting import rights
from reconciler.plan.syncable import SYNCED

PAGE = Path(__file__).parents[5] / "docs" / "targets.md"


def test_the_page_shows_the_rights_that_are_made() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    shown = [list(yaml.safe_load_all(block)) for block in blocks if "kind: ClusterRole\n" in block]
    assert shown == [rights.objects()]


def test_they_are_for_what_goes_down_and_nothing_else() -> None:
    role = next(each for each in rights.objects() if each["kind"] == "ClusterRole")
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]}
    role["rules"].remove(everything)
    granted = {GroupResource(g, r) for rule in role["rules"] for g in rule["apiGroups"] for r in rule["resources"]}
    served = {kind.group_resource for kind in kubernetes_builtins().all()} & SYNCED
    assert granted == served | {GroupResource("", "namespaces"), GroupResource("", "events")}
    assert [rule["verbs"] for rule in role["rules"] if "events" in rule["resources"]] == [["list", "watch"]]
    assert not [rule for rule in role["rules"] if {"*", "bind", "escalate", "impersonate"} & set(rule["verbs"])]
    more = rights.objects([GroupResource("data.shop.example", "databases")])
    role = next(each for each in more if each["kind"] == "ClusterRole")
    assert [rule["resources"] for rule in role["rules"] if rule["apiGroups"] == ["data.shop.example"]] == [
        ["databases"]
    ]


def test_a_token_may_be_made_of_itself_alone() -> None:
    found = [
        (each["kind"], rule)
        for each in rights.objects()
        for rule in each.get("rules", ())
        if any("token" in resource for resource in rule["resources"])
    ]
    rule = {
        "apiGroups": [""],
        "resources": ["serviceaccounts/token"],
        "resourceNames": ["treeplane"],
        "verbs": ["create"],
    }
    assert found == [("Role", rule)]
