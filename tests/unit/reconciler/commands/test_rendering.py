"""What renders for a server and for commands on a clone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.commands import rendering
from reconciler.commands.settings import ReconcileSettings
from reconciler.rendering.settings import RenderingSettings


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[RenderingSettings]:
    """The settings of each renderer that is made."""
    found: list[RenderingSettings] = []

    def make(settings: RenderingSettings) -> Any:
        found.append(settings)

    monkeypatch.setattr(rendering, "DirectoryRenderer", make)
    return found


def test_a_server_keeps_what_it_renders_in_its_data_directory(made: list[RenderingSettings], tmp_path: Path) -> None:
    rendering.renderer_of_server(tmp_path, Path("/k"), Path("/h"))
    assert (made[0].cache, made[0].kubectl, made[0].helm) == (tmp_path / "rendering", Path("/k"), Path("/h"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("told", ["/caches", "relative", ""])
def test_commands_keep_it_among_the_users_caches(
    made: list[RenderingSettings], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", told)
    rendering.renderer_of_user()
    home = Path(told) if told == "/caches" else tmp_path / ".cache"
    assert made[0].cache == home / "treeplane" / "rendering"
    assert made[0].kubectl is made[0].helm is None


def test_charts_are_told_what_is_served(made: list[RenderingSettings], tmp_path: Path) -> None:
    rendering.renderer(tmp_path)
    assert made[0].kube_version == "v1.36.0"
    assert {"v1", "apps/v1", "policy/v1", "tenancy.kcp.io/v1alpha1"} <= set(made[0].api_versions)
    assert "policy/v1beta1" not in made[0].api_versions


def test_the_programs_reach_the_reconciler(tmp_path: Path) -> None:
    told = ReconcileSettings(
        tmp_path, tmp_path, source="s", url="u", local_url="u", rendering_kubectl=Path("/k"), rendering_helm=None
    )
    found = ReconcileSettings.from_json(told.to_json())
    assert (found.rendering_kubectl, found.rendering_helm) == (Path("/k"), None)
