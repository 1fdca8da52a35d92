"""What workspaces have for being of their type is kept once, and of each what is its own."""

from __future__ import annotations

from collections import defaultdict

import pytest
from support.loadedfleet import LoadedFleet, configmap

from apiserver.model.keys import Key
from apiserver.storage.templates import Filled, fill
from reconciler.loading import effects
from reconciler.loading.forms import Forms
from reconciler.loading.likeness import like_others

R = "workspaces/root"
TYPE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: %s, path: root}}\n"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> dict[Key, Filled]:
    """What was made to be kept in that form."""
    found: dict[Key, Filled] = {}

    def spy(key: Key, obj: dict[str, object], value: bytes) -> Filled | None:
        filled = like_others(key, obj, value)
        assert filled is not None and fill(filled.template, key, filled.parameters) == value
        found[key] = filled
        return filled

    monkeypatch.setattr(effects, "like_others", spy)
    monkeypatch.setattr(Forms, "put", lambda *_: None)  # what comes from a form is never cut
    return found


@pytest.mark.parametrize("kind", ["universal", "organization", "kube-compat"])
def test_of_a_workspace_only_what_is_its_own_is_kept(fleet: LoadedFleet, kept: dict[Key, Filled], kind: str) -> None:
    commits = [{f"{R}/{name}/workspace.yaml": TYPE % kind} for name in ("a", "long-name", "cluster", "name", "default")]
    for files in commits:
        fleet.commit(files)
    templates: dict[tuple[str, str], set[bytes]] = defaultdict(set)
    for key, filled in kept.items():
        name = key.name if key.resource != "workspaces.tenancy.kcp.io" else ""
        templates[key.resource, name].add(filled.template)
    alike = {at: found for at, found in templates.items() if len(found) == 1}
    assert {resource for resource, _ in alike} >= {"namespaces"}
    assert all(len(found) <= 3 for found in templates.values()), "a name that stands in the text by chance, too"
    assert max(len(filled.parameters) for filled in kept.values()) < 130


def test_what_a_tenant_declares_is_kept_as_it_is(fleet: LoadedFleet, kept: dict[Key, Filled]) -> None:
    fleet.commit({f"{R}/a/workspace.yaml": "", f"{R}/a/a.yaml": configmap()})
    assert "configmaps" not in {key.resource for key in kept}
