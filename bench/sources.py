"""What it takes to follow so many tenants' repositories on one git server.

    .venv/bin/python bench/sources.py [--sources 500] [--hanging 20]

A git server over TLS on this machine, in a process of its own, with so many small repositories, which the follower
fetches at first, then looks at while nothing is new, then again when each has a commit; then the same beside some that
take requests and never answer. Counted is the CPU of the follower's process and of the git programs that it runs; a
look of git's own program (`git ls-remote`) stands beside. That the server shares the machine shows in the times.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import percentile, table
from support.fleetrepo import FleetRepo
from support.gitserver import GitAsked, GitServer

from reconciler.repository.sourcerefs import SourceCredentials, address, source_name
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.followed import FollowedSource
from reconciler.sourcing.follower import SourceFollower
from reconciler.sourcing.settings import FollowSettings

SETTINGS = FollowSettings(interval=3600, least=0)
GIT_LOOKS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sources", type=int, default=500)
    parser.add_argument("--hanging", type=int, default=20)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        serve(given.serve)
        return
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        repositories = made(folder / "repositories", given.sources)
        with serving(folder) as port:
            measured(folder, repositories, port, given.hanging)


def measured(folder: Path, repositories: list[FleetRepo], port: int, hanging: int) -> None:
    ca = (folder / "keys" / "ca.crt").read_bytes()
    sources = {name: followed(name, port, ca) for name in (repository.path.name for repository in repositories)}
    well = {source_name(name, "well"): source for name, source in sources.items()}
    hang = {source_name(f"{n}", "hang"): followed(f"hang{n}.git", port, ca) for n in range(hanging)}
    rows = []
    follower = SourceFollower(SourceStore(folder / "sources"), lambda _: None, SETTINGS)
    follower.start()
    try:
        rows.append(row("first fetch", follower, well, lambda: follower.follow(well)))
        rows.append(row("look, nothing new", follower, well, lambda: follower.look_now(well)))
        change(repositories)
        rows.append(row("look, each has a commit", follower, well, lambda: follower.look_now(well)))
        follower.follow({**hang, **well})
        rows.append(row(f"look beside {hanging} new ones that hang", follower, well, lambda: follower.look_now(well)))
        rows.append(row("the same again", follower, well, lambda: follower.look_now(well)))
    finally:
        follower.close(10)
    rows.append(git_row(port, folder / "keys" / "ca.crt"))
    head = ["", "all done", "slowest", "median", "CPU each"]
    table(f"{len(well)} sources on one server", [head, *rows])


def row(what: str, follower: SourceFollower, names: Collection[str], begin: Callable[[], None]) -> list[str]:
    wall, began, spent = time.time(), time.monotonic(), cpu()
    begin()
    waits = dict[str, float]()
    while len(waits) < len(names):
        time.sleep(0.02)
        for name in names:
            found = follower.found(name)
            if name not in waits and found.looked > wall:
                assert not found.fault, found
                waits[name] = found.looked - wall
    each = [*waits.values()]
    took, used = time.monotonic() - began, (cpu() - spent) / len(names)
    return [what, f"{took:.1f} s", f"{max(each):.1f} s", f"{percentile(each, 0.5):.1f} s", f"{used * 1000:.1f} ms"]


def git_row(port: int, ca: Path) -> list[str]:
    spent, began = cpu(), time.monotonic()
    environment = {**os.environ, "GIT_SSL_CAINFO": str(ca), "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    command = ["git", "ls-remote", f"https://127.0.0.1:{port}/0.git", "refs/heads/main"]
    for _ in range(GIT_LOOKS):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    took = (time.monotonic() - began) / GIT_LOOKS
    return ["one `git ls-remote`", f"{took:.2f} s", "", "", f"{(cpu() - spent) / GIT_LOOKS * 1000:.1f} ms"]


def cpu() -> float:
    """Seconds, of this process and of those that it waited for."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in found)


def followed(name: str, port: int, ca: bytes) -> FollowedSource:
    at = address(f"https://127.0.0.1:{port}/{name}", "main")
    return FollowedSource(at, SourceCredentials(ca=ca), trusted=True)


def made(folder: Path, count: int) -> list[FleetRepo]:
    folder.mkdir()
    first = FleetRepo(folder / "0.git")
    first.commit({f"app/{number}.yaml": f"number: {number}\n" * 20 for number in range(20)})
    shutil.rmtree(first.path / "hooks", ignore_errors=True)
    for number in range(1, count):
        shutil.copytree(first.path, folder / f"{number}.git")
    return [FleetRepo(folder / f"{number}.git") for number in range(count)]


def change(repositories: list[FleetRepo]) -> None:
    for repository in repositories:
        repository.commit({"app/0.yaml": "number: changed\n"})


@contextmanager
def serving(folder: Path) -> Iterator[int]:
    """The server's port."""
    environment: Mapping[str, str] = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__, "--serve", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def serve(folder: Path) -> None:
    def hang(asked: GitAsked) -> bool:
        if asked.repository.startswith("hang"):
            asked.ended.wait()
            return True
        asked.handler.server.git.asked.clear()
        return False

    server = GitServer(folder / "repositories", folder / "keys", spoil=hang)
    print(server.port, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
