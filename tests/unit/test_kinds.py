"""What a kind is, is one entry: none is incomplete, none leads nowhere, and no table beside them tells it again."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from apiserver.admission import completion
from apiserver.auth import rbac
from apiserver.endpoints import reviews
from apiserver.model.keys import storage_name
from apiserver.registry import behaviours, kinds, printers
from apiserver.registry.behaviours.base import Behaviour
from apiserver.registry.builtins import catalogue
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.entry import BuiltinKind, Health, Review, Runtime, Sync
from apiserver.registry.builtins.groups import GROUPS
from apiserver.registry.facts import load
from apiserver.registry.printers.base import SIMPLE, Printer
from apiserver.registry.served import ServedKind
from reconciler.plan import health

REPOSITORY = Path(__file__).parents[2]
EACH = pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)


@cache
def _served() -> dict[str, ServedKind]:
    """The kinds by qualified resource, each as it is stored."""
    tables = (kinds.common_builtins(), kinds.kubernetes_builtins())
    return {
        k.qualified: k
        for found in tables
        for kind in found.all()
        if (k := found.preferred(kind.group, kind.resource)) is not None
    }


# -- every kind has its entry


def test_every_kind_has_one_entry_and_every_entry_a_kind() -> None:
    said = [(fact["kind"], storage_name(fact["group"], fact["resource"])) for fact in load.kubernetes()["resources"]]
    own = [crd["spec"] for crd in load.treeplane()]
    said += [(spec["names"]["kind"], storage_name(spec["group"], spec["names"]["plural"])) for spec in own]
    entries = [(entry.kind, entry.qualified) for family in catalogue._FAMILIES for entry in family.KINDS]
    assert sorted(entries) == sorted(set(said)), "each kind has an entry in one file of registry/builtins"


def test_every_kind_is_in_a_group_that_is_listed() -> None:
    own = {crd["spec"]["group"] for crd in load.treeplane()}
    assert {entry.group for entry in ENTRIES.values()} == set(GROUPS) | own


# -- what an entry names is there


@EACH
def test_what_an_entry_says_fits_its_kind(entry: BuiltinKind) -> None:
    kind = _served()[entry.qualified]
    tables = (kinds.common_builtins(), kinds.kubernetes_builtins())
    versions = {k.version for table in tables for k in table.all() if k.qualified == entry.qualified}
    own = kind.custom
    assert not entry.shares or (ENTRIES[entry.shares].kind, entry.shares) == (entry.kind, kind.storage)
    assert versions > set(entry.other_versions)
    said = [bool(each) for each in (entry.everywhere, entry.in_root, entry.export)]
    assert (sum(said) == 1) >= own, "our own kinds are everywhere, in root, or come by an export"
    assert own >= (entry.in_root or bool(entry.export))
    assert (entry.review is not None) == (not kind.storage and set(kind.verbs) == {"create"} and entry.everywhere)
    assert set(entry.readings) <= set(entry.selectable)
    assert own >= bool(entry.cells) and set(entry.cells) <= {column.name for column in kind.columns}
    assert not (own and entry.printer is not SIMPLE), "of our own kinds the definition says the columns"
    assert own >= bool(entry.unsupported)
    assert (entry.grants is not None) == (entry.qualified in rbac.MARKED)
    assert not entry.token_bound or not entry.group, "a token names what it is bound to in version v1 alone"
    assert not entry.autoscaled or kind.scale is not None
    assert entry.labels_count <= entry.generation
    assert (kind.subresources >= {"status"}) >= entry.status_created
    assert not entry.generation or entry.runtime is not Runtime.ALWAYS
    assert not entry.by_directory or entry.servers_status
    assert entry.servers_status <= entry.computed_status
    assert entry.sync is Sync.NEVER or kind.namespaced
    assert (entry.health is Health.EXISTS and not entry.stateful) or entry.sync is not Sync.NEVER or not kind.namespaced
    assert (entry.sync is Sync.BUILT_IN) <= entry.everywhere


@EACH
def test_fields_that_an_entry_names_are_in_the_schema(entry: BuiltinKind) -> None:
    kind = _served()[entry.qualified]
    read = [path for selectable in entry.selectable for path in _paths(entry, selectable)]
    for path in [*read, *(field.path for field in entry.unsupported)]:
        assert _has(kind, path), path


def _paths(entry: BuiltinKind, selectable: str) -> tuple[str, ...]:
    reading = entry.readings.get(selectable)
    return (selectable,) if reading is None else reading.paths


def _has(kind: ServedKind, path: str) -> bool:
    node = kind.schema.root
    for part in path.split("."):
        found = node.child(part)
        if found is None:
            return False
        node = found
    return True


def test_plugins_and_kinds_know_each_other() -> None:
    assert {name for entry in ENTRIES.values() for name in entry.plugins} == set(completion._COMPLETING)
    assert {entry.vetted_by for entry in ENTRIES.values()} - {""} == set(completion._VETTING)
    protected = {name for name, entry in ENTRIES.items() if "StorageObjectInUseProtection" in entry.plugins}
    assert protected == {name for name, entry in ENTRIES.items() if entry.finalizer}


def test_questions_have_answers_and_rules_of_health_are_there() -> None:
    assert {entry.review for entry in ENTRIES.values()} - {None} == set(Review) == set(reviews._ANSWERS)
    assert {entry.health for entry in ENTRIES.values()} == set(Health) == {*health._CHECKS, Health.EXISTS}


def test_no_behaviour_and_no_printer_is_without_a_kind() -> None:
    used = {id(part) for entry in ENTRIES.values() for part in (entry.behaviour, entry.printer)}
    for package in (behaviours, printers):
        for module in pkgutil.iter_modules(package.__path__):
            found = importlib.import_module(f"{package.__name__}.{module.name}")
            for name, value in vars(found).items():
                if isinstance(value, Behaviour | Printer) and value is not SIMPLE:
                    assert id(value) in used, f"{found.__name__}.{name}"


# -- and nobody tells it again

NAMES = {name for entry in ENTRIES.values() for name in (entry.kind, entry.qualified, entry.resource)}
LEFT = {
    "apiserver/auth/bootstrap.py": "rules of roles, which name resources",
    "apiserver/auth/bootstrap_generate.py": "the two kinds of what Kubernetes' own roles are distilled from",
    "apiserver/auth/rbac.py": "the four kinds that a policy is compiled from, each for what it is",
    "apiserver/registry/behaviours/quotas.py": "the names of scopes of a quota, which are called as kinds are",
    "apiserver/registry/behaviours/rbac.py": "what the field roleRef.kind of a RoleBinding may say",
    "apiserver/registry/behaviours/virtualpaths.py": "sources of volumes in a message, which are called as kinds are",
    "reconciler/plan/rootaccess.py": "resources as kcp's roles name them; what everybody may do with them is no kind's",
}
"""Where names of several kinds stand together still, and why that is no table of what kinds are."""


def test_no_table_by_kinds_stands_beside_their_entries() -> None:
    found = {
        file: lines
        for half in ("apiserver", "reconciler")
        for path in sorted((REPOSITORY / half).rglob("*.py"))
        if not (file := str(path.relative_to(REPOSITORY))).startswith("apiserver/registry/builtins/")
        if (lines := sorted(_tables(path.read_text())))
    }
    more = {file: lines for file, lines in found.items() if file not in LEFT}
    assert more == {}, "say it in the entries of the kinds"
    assert LEFT.keys() <= found.keys(), "take away what is left no more"


@pytest.mark.parametrize(
    "source",
    [
        '{"pods": 1, "services": 2}',
        'frozenset({"Pod", "Service"})',
        'G = "apps"\nX = {f"deployments.{G}": 1, f"statefulsets.{G}": 2}',
        '{GroupResource("apps", "deployments"), GroupResource("", "pods")}',
        '{("apps", "Deployment"): 1, ("", "Pod"): 2}',
        '{"": "configmaps secrets", "apps": "deployments"}',
        'x in ("pods", "services")',
    ],
)
def test_a_table_by_kinds_is_found(source: str) -> None:
    assert list(_tables(source))


@pytest.mark.parametrize("source", ['PODS, NODES = "pods", "nodes"', '{"name": 1, "pods": 2, "x": 3}', '["pods"]'])
def test_what_is_none_is_not_taken_for_a_table(source: str) -> None:
    assert not list(_tables(source))


def _tables(source: str) -> Iterator[int]:
    """Lines of displays (dicts by their keys or their values) at least half of which, and two, are names of kinds. Not
    what gives names to several constants at once: a module may call what it reads as it likes."""
    tree = ast.parse(source)
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    naming = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Tuple) for target in node.targets)
    }
    for node in ast.walk(tree):
        if id(node) in naming:
            continue
        if isinstance(node, ast.Dict):
            columns = [[key for key in node.keys if key is not None], node.values]
        elif isinstance(node, ast.Set | ast.List | ast.Tuple):
            columns = [node.elts]
        else:
            continue
        for elements in columns:
            named = sum(_kinds_in(element, constants) for element in elements)
            if named >= 2 and named * 2 >= len(elements):
                yield node.lineno
                break


def _kinds_in(node: ast.expr, constants: dict[str, object]) -> int:
    """How many kinds an element of a display names."""
    text = _text(node, constants)
    if text is not None:
        words = text.split()
        return len(words) if words and all(word in NAMES for word in words) else 0
    if isinstance(node, ast.Tuple):
        parts: list[ast.expr] = node.elts
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        parts = node.args if node.func.id in ("GroupResource", "storage_name") else []
    else:
        return 0
    texts = [_text(part, constants) for part in parts]
    return int(None not in texts and any(text in NAMES for text in texts))


def _text(node: ast.expr, constants: dict[str, object]) -> str | None:
    """What a literal says, f-strings of the module's constants included; None of everything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [
        constants.get(part.value.id) if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name)
        else part.value if isinstance(part, ast.Constant) else None
        for part in node.values
    ]  # fmt: skip
    return "".join(map(str, parts)) if None not in parts else None
