"""WorkspaceTypes that extend themselves hold who declares them, or who asks for one, and nobody else."""

from __future__ import annotations

from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import Another, assert_recovers

ROOT = "workspaces/root"
OF_GOLD = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: gold, path: 'root:a'}}\n"


def kind(name: str, *others: str) -> str:
    extended = "".join(f"{{name: {o.rpartition(':')[2]}, path: '{o.rpartition(':')[0]}'}}," for o in others)
    return (
        "apiVersion: tenancy.kcp.io/v1alpha1\nkind: WorkspaceType\n"
        f"metadata: {{name: {name}}}\nspec: {f'{{extend: {{with: [{extended}]}}}}' if extended else '{}'}\n"
    )


def test_who_closes_a_circle_is_told_where(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{A}/gold.yaml": kind("gold", "root:a:silver"), f"{A}/silver.yaml": kind("silver")})
    assert fleet.held() == {}
    fleet.commit({f"{A}/silver.yaml": kind("silver", "root:a:gold"), f"{B}/app.yaml": configmap(a="new")})
    [path] = fleet.held()
    [error] = fleet.held()[path]
    assert path == "root:a"
    assert error == (
        f"{A}/silver.yaml:1: circular dependency detected in workspace type root:a:silver: "
        "root:a:silver -> root:a:gold -> root:a:silver (take one of these out of spec.extend.with)"
    )
    assert fleet.data("root:b")["a"] == "new"
    assert_recovers(fleet, another)
    fleet.commit({f"{A}/silver.yaml": kind("silver")})
    assert fleet.held() == {}


def test_all_of_a_circle_that_comes_at_once_are_told(fleet: LoadedFleet, another: Another) -> None:
    fleet.commit({f"{A}/gold.yaml": kind("gold", "root:a:silver") + "---\n" + kind("silver", "root:a:gold")})
    [errors] = fleet.held().values()
    way_from_gold = "gold", "silver", "gold"
    found = "circular dependency detected in workspace type"
    assert [error.partition(" (")[0] for error in errors] == [
        f"{A}/gold.yaml:{line}: {found} root:a:{way[0]}: {' -> '.join(f'root:a:{name}' for name in way)}"
        for line, way in ((1, way_from_gold), (6, ("silver", "gold", "silver")))
    ]
    assert_recovers(fleet, another)


def test_of_a_circle_of_two_workspaces_who_asks_for_it_waits_until_it_is_open(
    fleet: LoadedFleet, another: Another
) -> None:
    """Neither of the two is at fault alone; who has the type already keeps it."""
    fleet.commit({f"{A}/gold.yaml": kind("gold", "root:b:silver"), f"{B}/silver.yaml": kind("silver")})
    fleet.commit({f"{ROOT}/c/workspace.yaml": OF_GOLD})
    fleet.commit({f"{B}/silver.yaml": kind("silver", "root:a:gold")})
    assert fleet.held() == {}
    fleet.commit({f"{ROOT}/d/workspace.yaml": OF_GOLD})
    [(path, [error])] = fleet.held().items()
    assert path == "root:d"
    assert error.startswith(
        f"{ROOT}/d/workspace.yaml:1: circular dependency detected in workspace type root:a:gold: root:a:gold -> "
    )
    assert_recovers(fleet, another)
    fleet.commit({f"{B}/silver.yaml": kind("silver")})
    assert fleet.held() == {}
    assert fleet.record("root:d").type == "root:a:gold"
    assert_recovers(fleet, another, "third")
