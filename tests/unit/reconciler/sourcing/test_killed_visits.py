"""A process that is killed in the middle of a visit, wherever that is: the next one finds a repository that it can use,
with what was there before, and leaves nothing behind."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.sourcevisits import NAME, Tenant

from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.kept import TRACKED
from reconciler.sourcing.settings import DEFAULT
from reconciler.sourcing.taking import Taking
from reconciler.sourcing.visit import within

HERE = Path(__file__).parents[4]
VISIT = """
import os, shutil, signal, subprocess, sys
from pathlib import Path
from reconciler.repository import library, packing, sourcestore
from reconciler.repository.sourcerefs import SourceCredentials, address
from reconciler.sourcing import kept, visit
from reconciler.sourcing.disk import SourceDisk
from reconciler.sourcing.followed import FollowedSource
from reconciler.sourcing.settings import FollowSettings
left, name, directory, url, ca, served = int(sys.argv[1]), *sys.argv[2:]

def moment():
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)

def dying(run):
    def call(*a, **k):
        moment()
        found = run(*a, **k)
        if hasattr(found, "pid"):
            print(found.pid, flush=True)
        moment()
        return found
    return call

for owner, attribute in (
    (Path, "mkdir"), (Path, "rename"), (Path, "unlink"), (library, "create"), (kept, "move_ref"),
    (shutil, "rmtree"), (subprocess, "Popen"), (visit.UploadPack, "fetch"), (SourceDisk, "changed"),
):
    setattr(owner, attribute, dying(getattr(owner, attribute)))
store = sourcestore.SourceStore(Path(directory))
source = FollowedSource(address(url, "main"), SourceCredentials(ca=Path(ca).read_bytes()), trusted=True)
settings = FollowSettings(packs=0)
made = visit.Visit(name, source, [served], (), False, visit.within(60)).make(SourceDisk(store, 10**9), settings)
print("head", made.head)
"""


def killed(tenant: Tenant, moment: int, served: str) -> tuple[bool, list[int]]:
    """Whether the visit was cut off at that moment, and git's programs that were begun."""
    ca = tenant.server.keys / "ca.crt"
    words = [str(moment), NAME, str(tenant.store.directory), tenant.server.url("a.git"), str(ca), served]
    done = subprocess.run(
        [sys.executable, "-c", VISIT, *words], cwd=HERE, env={**os.environ, "PYTHONPATH": str(HERE)},
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -9), done.returncode
    return done.returncode != 0, [int(line) for line in done.stdout.splitlines() if line.isdigit()]


def started(tenant: Tenant) -> None:
    """As the next process starts."""
    tenant.store = SourceStore(tenant.store.directory)
    tenant.store.clear()
    tenant.second = False


def is_whole(tenant: Tenant, commit: str) -> bool:
    return Taking(tenant.here, within(60), DEFAULT.bounds).is_whole(commit)


def ended(programs: list[int]) -> bool:
    """They go on alone for a moment, and write into what is removed meanwhile."""
    for program in programs:
        try:
            os.kill(program, 0)
        except ProcessLookupError:
            continue
        return False
    return True


@pytest.mark.parametrize("first", [True, False], ids=["the first visit", "a later one"])
def test_killed_at_any_moment_it_has_lost_nothing(tenant: Tenant, first: bool, eventually: Callable[..., bool]) -> None:
    beginning, served = tenant.repository.head, "1" * 40
    if not first:
        served = tenant.repository.commit({"app/web.yaml": "served"})
        tenant.visit(keep=frozenset({served}))
    moment, was_killed = 0, True
    while was_killed:
        noise = {f"{n}.bin": random.Random(moment * 10 + n).randbytes(3000) for n in range(5)}
        head = tenant.repository.commit({"app/web.yaml": str(moment), **noise}, parent=beginning)
        was_killed, programs = killed(tenant, moment, served)
        known = tenant.store.open(NAME)
        started(tenant)
        if not first:
            assert known is not None
            assert is_whole(tenant, served), "what was served is here, whoever looks"
        if tenant.store.open(NAME) is not None and (at := tenant.here.ref(TRACKED + "main")) is not None:
            assert is_whole(tenant, at), "a ref leads to what is whole"
        assert tenant.visit(keep=frozenset({served})).head == head
        assert is_whole(tenant, head)
        eventually(lambda programs=programs: ended(programs), 60)
        started(tenant)
        assert tenant.left_over() == []
        assert [path.name for path in tenant.store.directory.iterdir()] == [NAME]
        if first and was_killed:
            tenant.store.remove(NAME)
        moment += 3
    assert moment > 20, "all of it was tried"
