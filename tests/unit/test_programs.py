"""Programs that are started: none is waited for without a deadline, and few modules start one otherwise."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
WAITED = {"run", "call", "check_call", "check_output"}
"""Of subprocess: they return once the program has ended."""
STARTED = {"Popen", "subprocess_exec", "subprocess_shell", "create_subprocess_exec", "create_subprocess_shell"}
STARTS = {
    "apiserver/endpoints/gitprocess.py": "git for a clone or a push, which ends with its request (gitservice)",
    "apiserver/launch.py": "an API worker, which lives as long as the server",
    "reconciler/commands/children.py": "the server's other processes, which live as long",
    "reconciler/rendering/bubblewrap.py": "a renderer, which running.py waits for",
    "reconciler/rendering/landlock.py": "a renderer, which running.py waits for",
    "reconciler/repository/command.py": "git, with the deadlines of Patience",
}
"""What starts a program and looks after it by itself."""
NEVER = {"system", "popen", "getoutput", "getstatusoutput", "spawnl", "spawnv", "spawnvp", "posix_spawn"}


def calls() -> Iterator[tuple[str, ast.Call, str, str]]:
    """Of functions of modules: the file, the call, the module and the function."""
    for room in ("apiserver", "reconciler"):
        for file in sorted((REPOSITORY / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    of = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
                    yield str(file.relative_to(REPOSITORY)), node, of, node.func.attr


def test_a_program_that_is_waited_for_has_a_deadline() -> None:
    waited = [(file, node) for file, node, of, name in calls() if of == "subprocess" and name in WAITED]
    without = [f"{file}:{node.lineno}" for file, node in waited if "timeout" not in {k.arg for k in node.keywords}]
    assert len(waited) > 5
    assert without == []


def test_whoever_starts_one_otherwise_is_known() -> None:
    assert {file for file, _, _, name in calls() if name in STARTED} == set(STARTS)
    assert [
        f"{file}:{node.lineno}" for file, node, of, name in calls() if of in ("os", "subprocess") and name in NEVER
    ] == []


def test_functions_of_subprocess_are_called_by_their_whole_names() -> None:
    """Else the others would look past them."""
    for room in ("apiserver", "reconciler"):
        for file in sorted((REPOSITORY / room).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_bytes())):
                if isinstance(node, ast.ImportFrom) and node.module == "subprocess":
                    assert {alias.name for alias in node.names}.isdisjoint(WAITED | STARTED | NEVER), file
                if isinstance(node, ast.Import):
                    assert all(alias.asname is None for alias in node.names if alias.name == "subprocess"), file
