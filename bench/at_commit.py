"""How long kubectl waits for a workspace as a commit has it, below `/commits/<id>/`, in a fleet of N workspaces.

    .venv/bin/python bench/at_commit.py 10000

N workspaces of two files each, a hundredth of which take an export; twelve commits change one of them, and each is
recorded on the status branch. The fleet is served from there, and lists of ConfigMaps are asked for over HTTPS: the
first of all, for which the process that reads commits has to import what it works with; the first at each further
commit, of a workspace that stands alone and of one that takes an export; again; by the name of a branch; at a commit
that nobody served. Beside these, lists of what is served. Memory of that process, and of the stores on the disk.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from diff import prepared
from measure import bytes_on_disk, milliseconds, percentile, size, table, usage, verdict
from support.loadedfleet import LoadedFleet
from support.plane import Connection, Plane

COMMITS, EXPECTED = 12, 1.0
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {number: '%d'}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as directory:
        top = Path(directory)
        repository, commits, places = made(top, options.workspaces)
        plane = Plane(repository, top / "server" / "data")
        try:
            plane.start(60 + options.workspaces / 100)
            rows, worst = measured(plane, commits, places)
            pids = [usage(pid) for pid in plane.pids()]
            reader = next(each for each in pids if each is not None and each.name.endswith("viewer"))
            kept = bytes_on_disk(plane.data / "commits")
        finally:
            plane.stop()
    table(f"a list at a commit, {options.workspaces:,} workspaces", [["", "median", "slowest"], *rows])
    print(f"\nmemory of the process that reads commits {size(reader.own)}; stores of 8 commits {size(kept)}")
    print(f"expected of the first answer at a commit {EXPECTED} s: {verdict(worst <= EXPECTED)}")
    return 0 if worst <= EXPECTED else 1


def made(top: Path, count: int) -> tuple[Path, list[str], tuple[str, str]]:
    """The repository, the commits that are recorded and one that is not, and the paths of a workspace that stands alone
    and of one that takes an export."""
    fleet = LoadedFleet(top / "fleet")
    fleet.begin()
    alone = prepared(fleet, count)[0]
    commits = []
    for number in range(COMMITS):
        fleet.commit({f"{alone}/settings.yaml": CONFIG % (count + number)})
        fleet.publish()
        commits.append(fleet.repo.head)
    aside = fleet.repo.commit({f"{alone}/settings.yaml": CONFIG % 0})
    fleet.repo.reset(commits[-1])
    taking = next(record.path for record in fleet.records() if taken(fleet, record.directory))
    path = next(record.path for record in fleet.records() if record.directory == alone)
    fleet.close()
    subprocess.run(["git", "-C", str(fleet.repo.path), "branch", "aside", aside], check=True)
    subprocess.run(["git", "-C", str(fleet.repo.path), "repack", "-a", "-d", "-q"], check=True)
    return fleet.repo.path, [*commits, aside], (path, taking)


def taken(fleet: LoadedFleet, directory: str) -> bool:
    """Whether the workspace there takes an export."""
    repo = fleet.repo.repo
    return bool(directory) and repo.entry_at(repo.commit(fleet.repo.head).tree, f"{directory}/binding.json") is not None


def measured(plane: Plane, commits: list[str], places: tuple[str, str]) -> tuple[list[list[str]], float]:
    """The rows, and the slowest first answer but that which waits for imports."""
    connection, (alone, taking) = plane.connection(), places
    *recorded, aside = commits
    served = [asked(connection, f"/clusters/{alone}") for _ in range(COMMITS)]
    begun = asked(connection, f"/commits/{recorded[0]}/clusters/{alone}")
    first = [asked(connection, f"/commits/{commit}/clusters/{alone}") for commit in recorded[1:]]
    again = [asked(connection, f"/commits/{commit}/clusters/{alone}") for commit in recorded[-7:]]
    other = [asked(connection, f"/commits/{commit}/clusters/{taking}") for commit in recorded[-7:]]
    named = [asked(connection, f"/commits/main/clusters/{alone}") for _ in range(COMMITS)]
    never = [asked(connection, f"/commits/{aside}/clusters/{path}") for path in places]
    connection.close()
    rows = {"what is served": served, "at a commit, the first of all": [begun], "at a commit, the first": first,
            "at a commit, again": again, "of a workspace that takes an export, the first": other,
            "by the name of a branch, again": named, "at a commit that was never served, the first": never}  # fmt: skip
    told = [[name, milliseconds(percentile(times, 0.5)), milliseconds(max(times))] for name, times in rows.items()]
    return told, max(*first, *other, *never)


def asked(connection: Connection, world: str) -> float:
    """Seconds."""
    began = time.perf_counter()
    answer = connection.request("GET", f"{world}/api/v1/configmaps")
    seconds = time.perf_counter() - began
    if answer.status != 200 or not answer.body["items"]:
        raise SystemExit(f"{world}: {answer.status} {answer.body}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
