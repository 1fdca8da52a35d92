"""Renders directories: the one way in which kustomize and helm are run.

Made by commands/rendering, given to sources of manifests as `Renders`. A request goes through memory, disk and, where
neither knows it, a program in a sandbox; the same request by several threads at once is one run. What it comes to the
same each time is kept, faults too; what this machine is to blame for is told for some seconds, and then tried again.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future

from apiserver.model.remembered import Remembered
from reconciler.rendering import sandboxes
from reconciler.rendering.confinement import Confinement
from reconciler.rendering.outputs import KeptOutputs
from reconciler.rendering.programs import NoProgram
from reconciler.rendering.rendering import Rendered
from reconciler.rendering.request import RenderRequest, Tool
from reconciler.rendering.rounds import Rounds
from reconciler.rendering.sandboxes import ReadyTool
from reconciler.rendering.settings import RenderingSettings
from reconciler.rendering.tools import FoundTools

_FORMAT = "1"
"""Changes with what this room makes of the same request and the same program."""
_PASSING = 10.0
"""Seconds for which a fault of this machine is told without another try."""
_MOMENT = 0.05
_EXPECTED = 100_000
"""Requests that wait to be begun; beyond that a request is begun when it is asked for."""


class DirectoryRenderer:
    """Threads may share one, and a fork may go on with it. `close` ends what it began by itself."""

    def __init__(self, settings: RenderingSettings, confinements: Sequence[Confinement] | None = None) -> None:
        """`confinements`: the sandboxes to choose from, the best first; by default those that there are."""
        among = sandboxes.known_sandboxes() if confinements is None else confinements
        bounds = settings.bounds
        self._at_once = settings.at_once
        self._decided = {tool: _decided(tool, settings) for tool in Tool}
        self._tools = FoundTools(
            {Tool.KUSTOMIZE: settings.kubectl, Tool.HELM: settings.helm},
            lambda tool, program: sandboxes.tried(tool, program, among, bounds),
        )
        self._rounds = Rounds(settings)
        self._disk = KeptOutputs(settings.cache / "outputs", settings.cache_bytes, bounds.output)
        self._memory: Remembered[str, Rendered] = Remembered(settings.memory_bytes)
        self._passing: Remembered[str, tuple[float, Rendered]] = Remembered(1024 * 1024)
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[Rendered]] = {}
        self._expected: deque[RenderRequest] = deque()
        self._coming: Counter[str] = Counter()
        """Digests of what is expected and has not come."""
        self._workers: set[threading.Thread] = set()

    def rendered(self, request: RenderRequest) -> Rendered:
        try:
            ready = self._tools.ready(request.tool)
        except NoProgram as error:
            return Rendered(fault=str(error), hint=error.hint, lasting=False)
        key = self._key(request, ready)
        while True:
            found = self._known(key)
            if found is not None:
                return found
            with self._lock:
                others = self._under_way.get(key)
                if others is None:
                    mine = self._under_way[key] = Future[Rendered]()
            if others is None:
                return self._made(key, request, ready, mine)
            # Who was first may have had another repository, which is away; this one's is asked then.
            with contextlib.suppress(Exception):
                return others.result()

    def expect(self, requests: Iterable[RenderRequest]) -> None:
        begun = list(requests)
        with self._lock:
            taken = begun[: max(0, _EXPECTED - len(self._expected))]
            self._expected.extend(taken)
            self._coming.update(request.digest for request in taken)
            self._workers = {worker for worker in self._workers if worker.is_alive()}
            for _ in range(min(self._at_once - len(self._workers), len(self._expected))):
                worker = threading.Thread(target=self._work, name="rendering", daemon=True)
                self._workers.add(worker)
                worker.start()

    def is_expected(self, request: RenderRequest) -> bool:
        return self._coming[request.digest] > 0

    def is_at_hand(self, request: RenderRequest) -> bool:
        try:
            ready = self._tools.ready(request.tool)
        except NoProgram:
            return True  # which it says
        return self._known(self._key(request, ready)) is not None

    def version(self, tool: Tool) -> str:
        try:
            return self._tools.ready(tool).version
        except NoProgram:
            return ""

    @property
    def fingerprint(self) -> str:
        return _digest(*(part for tool in Tool for part in (self._decided[tool], self.version(tool) or "none")))

    def close(self) -> None:
        """Forgets what was expected, ends what runs, and leaves nothing but the cache. A process that ends at once need
        not: what runs ends with it, and what it leaves of its work goes with the next."""
        with self._lock:
            self._expected.clear()
            self._coming.clear()
            workers = list(self._workers)
        for worker in workers:
            while worker.is_alive():
                self._rounds.end()
                worker.join(_MOMENT)
        self._rounds.close()

    def _key(self, request: RenderRequest, ready: ReadyTool) -> str:
        return _digest(self._decided[request.tool], ready.version, request.directory, request.digest)

    def _known(self, key: str) -> Rendered | None:
        found = self._memory.get(key)
        if found is not None:
            return found
        until, passing = self._passing.get(key) or (0.0, None)
        if passing is not None and time.monotonic() < until:
            return passing
        found = self._disk.get(key)
        if found is not None:
            self._memory.put(key, found, _size(found))
        return found

    def _made(self, key: str, request: RenderRequest, ready: ReadyTool, mine: Future[Rendered]) -> Rendered:
        try:
            # It may have been made between the look and the claim.
            made = self._known(key) or self._rounds.render(request, ready)
            if made.lasting:
                self._memory.put(key, made, _size(made))
                self._disk.put(key, made)
            else:
                self._passing.put(key, (time.monotonic() + _PASSING, made), _size(made))
            mine.set_result(made)
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            with self._lock:
                self._under_way.pop(key, None)
        return made

    def _work(self) -> None:
        """Renders what is expected until there is no more. Who asks for it then is told what went wrong."""
        while True:
            with self._lock:
                if not self._expected:
                    self._workers.discard(threading.current_thread())
                    return
                request = self._expected.popleft()
            with contextlib.suppress(Exception):
                self.rendered(request)
            with self._lock:
                self._coming[request.digest] -= 1
                if self._coming[request.digest] <= 0:
                    del self._coming[request.digest]


def _decided(tool: Tool, settings: RenderingSettings) -> str:
    """Stands for the settings that decide what the same files come to."""
    bounds = settings.bounds
    numbers = (bounds.memory, bounds.output, bounds.files, bounds.content)
    told = (settings.kube_version, *settings.api_versions) if tool is Tool.HELM else ()
    return _digest(_FORMAT, tool, *map(str, numbers), *told)


def _digest(*parts: str) -> str:
    told = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape")
        told.update(b"%d:%b" % (len(data), data))
    return told.hexdigest()


def _size(rendered: Rendered) -> int:
    return 500 + len(rendered.output) + 4 * (len(rendered.fault) + len(rendered.hint))
