"""What the machine says: room, the store's file, certificates, the server's processes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from apiserver.auth import pki
from apiserver.auth.givencertificates import GivenCertificates
from apiserver.auth.keys import Keys
from apiserver.metrics import fleet, machine, place, store
from apiserver.metrics.definition import Labels, Metric
from apiserver.settings import ServerSettings
from apiserver.storage.lmdb_environment import StoreSettings
from apiserver.storage.lmdb_library import DATA
from apiserver.storage.protocol import View

_GIVEN = {"--tls-cert-file": "given", "--client-ca-file": "client-ca", "--external-ca-file": "external-ca"}
"""What they are called in metrics."""
_Sample = tuple[Metric, Labels, float]


def read(view: View, settings: ServerSettings, now: float) -> Iterator[_Sample]:
    yield store.REVISION, (), float(view.revision())
    yield store.SIZE_LIMIT, (), float(StoreSettings().map_size)
    with suppress(OSError):
        yield store.SIZE, (), float((settings.store_dir / DATA).stat().st_size)
    with suppress(OSError):
        found = shutil.disk_usage(settings.data_dir)
        yield machine.DISK_FREE, (), float(found.free)
        yield machine.DISK_SIZE, (), float(found.total)
    with suppress(OSError):
        packs = (settings.data_dir / "mirror" / "objects" / "pack").iterdir()
        yield fleet.MIRROR_SIZE, (), float(sum(file.stat().st_size for file in packs))
    with suppress(PackageNotFoundError):
        yield machine.BUILD, (version("treeplane"),), 1.0
    yield from _certificates(settings)
    yield from _processes(settings.data_dir / place.DIRECTORY, now)


def _certificates(settings: ServerSettings) -> Iterator[_Sample]:
    keys = Keys(settings.keys_dir)
    files = {"ca": keys.ca, "server": keys.server.certificate, "admin": keys.admin.certificate}
    for name, file in files.items():
        with suppress(OSError, ValueError):  # one that cannot be read is told of where it is used
            yield machine.CERTIFICATES, (name,), pki.ends(file.read_bytes())
    for option, _, life in GivenCertificates.of(settings).lives():
        yield machine.CERTIFICATES, (_GIVEN[option],), life.ends


def _processes(directory: Path, now: float) -> Iterator[_Sample]:
    import psutil  # noqa: PLC0415 - a worker that nobody scrapes starts without it

    for name, number in place.processes(directory).items():
        with suppress(psutil.Error, OSError):
            process = psutil.Process(number)
            with process.oneshot():
                times, started = process.cpu_times(), process.create_time()
                yield machine.CPU, (name,), times.user + times.system
                yield machine.MEMORY, (name,), float(process.memory_info().rss)
                yield machine.STARTED, (name,), min(started, now)
                yield machine.FILES, (name,), float(process.num_fds())
