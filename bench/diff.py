"""What `treeplane diff` costs where a change is small and the fleet is not: seconds and memory of the whole command.

    .venv/bin/python bench/diff.py 100000

N workspaces of two files each, a hundredth of which take an export of one of them, served and recorded on the status
branch. Told is a commit that changes 100 files in as many workspaces; one that changes the export's schema, so that
whoever takes it is found and judged; and `git diff --stat` of the first, for comparison.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from judging import WORKSPACE, committed, written
from measure import table
from support.loadedfleet import LoadedFleet
from support.widgets import binding, export, schema, widget

from apiserver.model.commits import own

PROVIDER = "workspaces/root/provider"
_COSTS = """import os, sys, time
began, nowhere = time.perf_counter(), os.open(os.devnull, os.O_WRONLY)
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nowhere, 1)])
_, status, usage = os.wait4(child, 0)
print(time.perf_counter() - began, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
"""
FILES = {
    "workspace.yaml": WORKSPACE,
    "settings.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {number: '%d'}\n",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    parser.add_argument("--changed", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="Leave the repository there.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        fleet = LoadedFleet(Path(directory) / "fleet")
        fleet.begin()
        names = prepared(fleet, options.workspaces)
        base = fleet.repo.head
        text = FILES["settings.yaml"].replace("%d", "changed")
        step = max(len(names) // options.changed, 1)
        files = fleet.repo.commit({f"{name}/settings.yaml": text for name in names[::step][: options.changed]})
        git = [shutil.which("git") or "git", "-C", str(fleet.repo.path)]
        subprocess.run([*git, "branch", "files", files], check=True)
        fleet.repo.reset(base)
        newer = {"newer.json": schema("v2", color={"type": "string"}), "export.json": export("v2")}
        shared = fleet.repo.commit({f"{PROVIDER}/{file}": text for file, text in newer.items()})
        fleet.close()
        subprocess.run([*git, "repack", "-a", "-d", "-q"], check=True)
        if options.keep:
            shutil.copytree(fleet.repo.path, options.keep)
        rows = [["", "seconds", "most memory", "exit"]]
        program = [str(Path(sys.executable).with_name("treeplane")), "diff", "-C", str(fleet.repo.path)]
        for _ in range(options.rounds):
            rows.append([f"{options.changed} files", *cost([*program, f"{base}...{files}"])])
            rows.append(["an export", *cost([*program, f"{base}...{shared}"])])
            rows.append(["git diff --stat", *cost([*git, "diff", "--stat", base, files])])
        table(f"treeplane diff, {options.workspaces:,} workspaces", rows)


def prepared(fleet: LoadedFleet, count: int) -> list[str]:
    """Loads and records them; the directories of those that take nothing."""
    offered = {"workspace.yaml": "", "schema.json": schema(), "export.json": export()}
    fleet.repo.commit({f"{PROVIDER}/{file}": text for file, text in offered.items()})
    committed(fleet, count, FILES)
    places = sorted(name.rpartition("/")[0] for name, _ in written(count, FILES) if name.endswith("/settings.yaml"))
    taken = {"binding.json": binding("root:provider"), "widget.json": widget(size=1)}
    fleet.repo.commit({f"{place}/{file}": text for place in places[::100] for file, text in taken.items()})
    fleet.loader.load(own(fleet.repo.head))
    fleet.publish()
    return [place for number, place in enumerate(places) if number % 100]


def cost(command: list[str]) -> list[str]:
    """Of a process that is started by one that has no memory to speak of, since what starts it counts as well."""
    found = subprocess.run([sys.executable, "-S", "-c", _COSTS, *command], capture_output=True, text=True, check=True)
    seconds, memory, status = found.stdout.split()
    return [f"{float(seconds):.2f}", f"{int(memory) / 1024:.0f} MiB", status]


if __name__ == "__main__":
    main()
