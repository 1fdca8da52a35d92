"""docs/conditions.md has every condition of every kind with its reasons: what the entries of kinds say of them is held
to the calls that make conditions."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reasons import reasons, sources

from apiserver.registry import openapi
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.conditiontypes import ConditionType
from apiserver.registry.builtins.entry import BuiltinKind
from apiserver.registry.served import ServedKind
from reconciler.commands.conditionspage import kinds, page, paragraph_of, paragraphs
from reconciler.commands.kindspage import own_kinds

DOCS = Path(__file__).parents[2] / "docs"
TROUBLESHOOTING = (DOCS / "troubleshooting.md").read_text()
DECLARED = [(entry, about) for entry in kinds() for about in entry.conditions]
OWN = [kind for versions in own_kinds() for kind in versions]
WHERE = "say it in apiserver/registry/builtins/conditiontypes.py"
PAIRS = {(about.type, reason) for _, about in DECLARED for reason in (*about.amiss, *about.usual)}


def test_the_page_is_made_of_the_entries() -> None:
    text = (DOCS / "conditions.md").read_text()
    assert page(text, TROUBLESHOOTING) == text, "make settings"


def test_each_reason_in_the_source_is_one_of_a_kinds_condition() -> None:
    known = {reason for _, reason in PAIRS}
    assert sorted({f"{each.word} ({each.where})" for each in reasons() if each.word not in known}) == [], WHERE


def test_each_condition_in_the_source_is_declared_with_its_reasons() -> None:
    said = {(each.type, each.word): each.where for each in reasons() if each.type}
    assert len(said) > 40  # the reading itself works
    missing = {f"{kind}: {word} ({where})" for (kind, word), where in said.items() if (kind, word) not in PAIRS}
    assert sorted(missing) == [], WHERE


@pytest.mark.parametrize(("entry", "about"), DECLARED, ids=[f"{e.kind}-{a.type}" for e, a in DECLARED])
def test_what_is_declared_is_in_the_source(entry: BuiltinKind, about: ConditionType) -> None:
    made = {each.word for each in reasons()} | {about.type}
    assert {*about.amiss, *about.usual} <= made
    assert f'"{about.type}"' in SOURCE
    assert about.says.endswith(".")


SOURCE = "".join(path.read_text() for path in sources() if path.name != "conditiontypes.py")


def test_a_reason_of_two_conditions_leads_to_the_paragraph_of_each() -> None:
    known = paragraphs(TROUBLESHOOTING)
    found = {
        (entry.kind, about.type, reason): paragraph_of(entry, about, reason, known)
        for entry, about in DECLARED
        for reason in about.amiss
    }
    assert None not in found.values()
    anchors = {key: each.anchor for key, each in found.items() if each is not None}
    assert anchors["Workspace", "SourceFollowed", "AddressRefused"] == "a-tenants-repository-is-not-followed"
    assert anchors["SyncTarget", "Ready", "AddressRefused"] == "a-cluster-is-not-ready"
    assert anchors["SyncTarget", "HeartbeatHealthy", "AddressRefused"] == "a-cluster-is-not-ready"
    assert anchors["Workspace", "WorkspaceScheduled", "Unschedulable"] == "a-workspace-does-not-come-or-does-not-go"
    assert anchors["Namespace", "NamespaceScheduled", "Unschedulable"] == "nothing-runs-on-a-cluster"


def test_a_reason_without_a_paragraph_is_said_with_its_kind() -> None:
    said = r"troubleshooting\.md has no row for InternalError of APIExportValid \(APIBinding\)"
    with pytest.raises(ValueError, match=said):
        page((DOCS / "conditions.md").read_text(), TROUBLESHOOTING.replace("`InternalError`", "`Other`"))


@pytest.mark.parametrize("kind", OWN, ids=[f"{kind.kind}-{kind.version}" for kind in OWN])
def test_kubectl_explain_says_which_there_are(kind: ServedKind) -> None:
    [schema] = (
        each for each in openapi.of_kind(kind).schemas.values()
        if {"group": kind.group, "version": kind.version, "kind": kind.kind} in each["x-kubernetes-group-version-kind"]
    )  # fmt: skip
    told = ENTRIES[kind.qualified].conditions
    status = schema["properties"].get("status", {"properties": {}})["properties"]
    said = status.get("conditions", {"description": ""})["description"]
    assert [about.type for about in told if f"{about.type}: {about.says}" not in said] == []
