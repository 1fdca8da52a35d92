"""What git spends on one changed file that comes in, beside so many directories: a push, and a mirror's fetch.

    .venv/bin/python bench/incoming.py [--directories 100000,300000]

A bare repository with so many directories, by hundreds, one small file in each. Each push and each fetch
brings a commit that changes one file. Counted is the CPU time of git's processes alone (for a fetch with those that
answer it), the median of five; *by itself* is git without `apiserver/gitvouch`.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import table
from support.packs import Objects, edited, push_body, wide

from apiserver import gitvouch
from reconciler.repository.command import git
from reconciler.repository.incoming import incoming

ROUNDS = 5
REF = "refs/heads/main"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--directories", default="100000,300000")
    rows = []
    for count in map(int, parser.parse_args().directories.split(",")):
        with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
            for what, measure in (("push", pushes), ("fetch", fetches)):
                alone, vouched = (measure(Path(name), count, vouch) for vouch in (False, True))
                rows.append([what, f"{count:,}", f"{alone:.0f} ms", f"{vouched:.0f} ms", f"{alone / vouched:.0f}"])
    table("CPU of git for one changed file", [["", "directories", "by itself", "vouched", "ratio"], *rows])


def pushes(folder: Path, directories: int, vouch: bool) -> float:
    git_dir = repository(folder / f"pushed-{directories}-{vouch}.git")
    tip, spent = wide(git_dir, directories), []
    settings = {"receive.fsckObjects": "true", "receive.unpackLimit": "1"} | (gitvouch.SETTINGS if vouch else {})
    for number in range(ROUNDS):
        made = Objects()
        new = edited(made, git_dir, tip, "fleet/00003/07/a.yaml", f"round {number}")
        body = push_body([(tip, new, REF)], made.pack(made.made))
        spent.append(cpu(partial(push, git_dir, body, configured(settings) | gitvouch.variables([new]))))
        tip = new
        assert ref(git_dir) == tip
    return statistics.median(spent)


def push(git_dir: Path, body: bytes, variables: Mapping[str, str]) -> None:
    command = ["git", "receive-pack", "--stateless-rpc", str(git_dir)]
    subprocess.run(command, input=body, env=variables, capture_output=True, check=True)


def fetches(folder: Path, directories: int, vouch: bool) -> float:
    source, mirror = (repository(folder / f"{name}-{directories}-{vouch}.git") for name in ("source", "mirror"))
    tip, spent = wide(source, directories), []
    fetch(mirror, source, "", vouch)
    for number in range(ROUNDS):
        made = Objects()
        tip = edited(made, source, tip, "fleet/00003/07/a.yaml", f"round {number}")
        made.store(source, made.made)
        git(source, "update-ref", REF, tip)
        spent.append(cpu(partial(fetch, mirror, source, tip, vouch)))
        assert ref(mirror) == tip
    return statistics.median(spent)


def fetch(mirror: Path, source: Path, tip: str, vouch: bool) -> None:
    arguments, settings = ("fetch", "-q", "--no-tags", f"file://{source}"), {"fetch.unpackLimit": "1"}
    if not vouch:
        git(mirror, *arguments, f"+{REF}:{REF}", settings=settings)
        return
    with incoming(mirror) as aside:
        git(mirror, *arguments, REF, settings=settings | gitvouch.SETTINGS, variables=aside.variables([tip]))
        aside.take()
        git(mirror, "update-ref", REF, aside.branches()["main"])


def repository(git_dir: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(git_dir)], check=True)
    return git_dir


def configured(settings: Mapping[str, str]) -> dict[str, str]:
    found = {"PATH": os.environ["PATH"], "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def ref(git_dir: Path) -> str:
    return git(git_dir, "rev-parse", REF).output.strip()


def cpu(call: Callable[[], object]) -> float:
    """Milliseconds of the processes that it starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    call()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    main()
