"""`treeplane validate` warns of what manifests name in other workspaces and is not there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from reconciler.commands.validate import validate_path

EXAMPLE = Path(__file__).parents[4] / "examples" / "fleet-repo"
WEB = "workspaces/root/shop/web"
BINDING = """---
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {{name: more}}
spec: {{reference: {{export: {{path: "{}", name: {}}}}}}}
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, tmp_path / "fleet"))


def test_a_fleet_that_names_what_is_there_gives_no_warning(fleet: Path) -> None:
    checked = validate_path(fleet)
    assert (checked.problems, checked.warnings) == ((), ())
    assert checked.render("text") == "no errors in 11 workspaces\n"
    assert "warnings" not in json.loads(checked.render("json"))


@pytest.mark.parametrize(
    ("path", "name", "said"),
    [
        ("root:shp:databases", "databases", "there is no workspace root:shp:databases (did you mean root:shop"),
        (
            "root:shop:databases",
            "databses",
            "workspace root:shop:databases has no APIExport databses (did you mean root:shop:databases:databases?)",
        ),
        ("root:compute", "kubernets", "workspace root:compute has no APIExport kubernets"),
    ],
)  # fmt: skip
def test_a_binding_to_what_is_not_there(fleet: Path, path: str, name: str, said: str) -> None:
    file = fleet / WEB / "apis.yaml"
    line = len(file.read_text().splitlines()) + 2
    file.write_text(file.read_text() + BINDING.format(path, name))
    checked = validate_path(fleet)
    assert checked.problems == ()
    [warning] = checked.warnings
    assert str(warning).startswith(f"{WEB}/apis.yaml:{line}: APIBinding more waits: {said}")
    text = checked.render("text")
    assert text == f"warning: {warning}\nno errors and 1 warning in 11 workspaces\n"
    assert json.loads(checked.render("json"))["warnings"][0]["line"] == line


def test_placements_that_ask_for_what_is_not_there(fleet: Path) -> None:
    file = fleet / WEB / "placements.yaml"
    before, between, after = file.read_text().partition("---\n")
    before = before.replace("continent: europe", "continent: asia")
    after = after.replace("root:infra:locations", "root:infra:location")
    file.write_text(before + between + after)
    said = [each.partition(": ")[2] for each in map(str, validate_path(fleet).warnings)]
    assert said == [
        "Placement production waits: spec.locationSelectors matches no Location of workspace root:infra:locations "
        "(there: america, europe)",
        "Placement staging waits: there is no workspace root:infra:location "
        "(did you mean root:infra:locations or root:infra or root:media:studio?)",
    ]


def test_a_part_of_a_fleet_is_not_asked(fleet: Path) -> None:
    """What is beside it is not loaded."""
    file = fleet / WEB / "apis.yaml"
    file.write_text(file.read_text() + BINDING.format("root:nowhere", "x"))
    assert validate_path(fleet, "root:shop:web").warnings == ()
