"""A renderer as sources of manifests see it, with a program that stands for kubectl: what is run, and what is not."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.renderings import RenderedFiles

from reconciler.rendering.confinement import ConfinedRun, Confinement, NoConfinement, Started
from reconciler.rendering.renderer import DirectoryRenderer
from reconciler.rendering.rendering import NOWHERE, Rendered, Renders
from reconciler.rendering.request import Tool
from reconciler.rendering.settings import RenderingBounds, RenderingSettings
from reconciler.repository.errors import RepositoryUnreadable

MIB = 1024 * 1024
SHORT = RenderingBounds(seconds=3)
"""In which the program tells its version, on a machine that has much else to do."""
Making = Callable[..., DirectoryRenderer]


class Counted:
    """A sandbox that counts what is run in it, but for the question for a version."""

    def __init__(self, inner: Confinement) -> None:
        self._inner, self.name, self.blind = inner, inner.name, inner.blind
        self.runs: list[ConfinedRun] = []
        self.under_way = self.most = 0
        self._lock = threading.Lock()

    def seen_at(self, top: Path) -> str:
        return self._inner.seen_at(top)

    def start(self, run: ConfinedRun) -> Started:
        if run.arguments[0] != "version":
            with self._lock:
                self.runs.append(run)
        return self._inner.start(run)


class Broken:
    name, blind = "broken", True

    def seen_at(self, top: Path) -> str:
        return str(top)

    def start(self, run: ConfinedRun) -> Started:
        raise NoConfinement("no namespaces")


@pytest.fixture
def counted(sandbox: Confinement) -> Counted:
    return Counted(sandbox)


@pytest.fixture
def files(tmp_path: Path) -> RenderedFiles:
    return RenderedFiles(tmp_path / "git")


@pytest.fixture
def make(counted: Counted, hostile: Path, tmp_path: Path) -> Iterator[Making]:
    made: list[DirectoryRenderer] = []

    def renderer(among: Any = None, **settings: Any) -> DirectoryRenderer:
        told = {"kubectl": hostile, "helm": hostile, "cache": tmp_path / "cache", "at_once": 2, **settings}
        made.append(DirectoryRenderer(RenderingSettings(**told), [counted] if among is None else among))
        return made[-1]

    yield renderer
    for one in made:
        one.close()
    work = tmp_path / "cache" / "work"
    assert not work.exists() or list(work.iterdir()) == []


def test_output_is_the_programs(make: Making, files: RenderedFiles) -> None:
    assert make().rendered(files.request({"a/deed": "same x: 1"}, "a")) == Rendered(b"x: 1  \n")


def test_the_same_is_rendered_once(make: Making, files: RenderedFiles, counted: Counted) -> None:
    request, renderer = files.request({"a/deed": "same x"}, "a"), make()
    assert renderer.rendered(request) == renderer.rendered(request)
    assert make().rendered(request).output  # by another process, from disk
    assert (len(counted.runs), files.asked) == (1, 1)
    renderer.rendered(files.request({"a/deed": "same x", "a/other": ""}, "a"))
    assert len(counted.runs) == 2


def test_at_once_by_several_it_is_one_run(make: Making, files: RenderedFiles, counted: Counted) -> None:
    request, renderer = files.request({"a/deed": "same x"}, "a"), make()
    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(lambda _: renderer.rendered(request), range(16)))
    assert len(answers) == len(counted.runs) == 1


def test_what_is_expected_is_begun(make: Making, files: RenderedFiles, counted: Counted, eventually: Any) -> None:
    renderer = make()
    requests = [files.request({f"{n}/deed": f"same {n}"}, str(n)) for n in range(6)]
    renderer.expect(iter(requests))
    eventually(lambda: len(counted.runs) == 6, 60)
    assert [renderer.rendered(r).output.strip() for r in requests] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert len(counted.runs) == 6
    eventually(lambda: not any(map(renderer.is_expected, requests)), 60)


def test_what_is_expected_is_so_until_it_comes(make: Making, files: RenderedFiles, eventually: Any) -> None:
    renderer = make(bounds=SHORT)
    slow, other = (files.request({f"{name}/deed": "wait"}, name) for name in ("slow", "other"))
    assert not renderer.is_expected(slow)
    renderer.expect([slow])
    assert renderer.is_expected(slow)
    assert not renderer.is_expected(other)
    eventually(lambda: not renderer.is_expected(slow), 60)
    assert renderer.rendered(slow).fault == "it takes more than 3 s"


def test_what_was_rendered_is_at_hand_faults_too(make: Making, files: RenderedFiles) -> None:
    good, slow = files.request({"a/deed": "same x"}, "a"), files.request({"slow/deed": "wait"}, "slow")
    for each, renderer in ((good, make()), (slow, make(bounds=SHORT))):
        assert not renderer.is_at_hand(each)
        renderer.rendered(each)
        assert renderer.is_at_hand(each)
    assert make().is_at_hand(good)


def test_who_waits_does_not_wait_for_all_that_is_expected(make: Making, files: RenderedFiles) -> None:
    """One that is slow holds one core; the rest goes on."""
    renderer, slow = make(), files.request({"slow/deed": "wait"}, "slow")
    renderer.expect([slow])
    renderer.expect([files.request({f"{n}/deed": f"same {n}"}, str(n)) for n in range(3)])
    assert renderer.rendered(files.request({"a/deed": "same x"}, "a")).output
    assert renderer.is_expected(slow)


def test_close_ends_what_runs(make: Making, files: RenderedFiles, counted: Counted, eventually: Any) -> None:
    renderer = make()
    renderer.expect([files.request({f"{n}/deed": "wait"}, str(n)) for n in range(9)])
    eventually(lambda: len(counted.runs) == 2, 60)
    began = time.monotonic()
    renderer.close()
    assert time.monotonic() - began < 15
    assert len(counted.runs) == 2


def test_settings_and_versions_are_part_of_what_is_kept(make: Making, files: RenderedFiles, counted: Counted) -> None:
    request = files.request({"a/deed": "same x"}, "a")
    prints = set()
    for settings in (
        {},
        {"kube_version": "v1.2.3"},
        {"api_versions": ("a/v1",)},
        {"bounds": RenderingBounds(output=2 * MIB)},
    ):
        renderer = make(**settings)
        renderer.rendered(request)
        prints.add(renderer.fingerprint)
    assert len(prints) == 4
    assert len(counted.runs) == 2  # what charts are told is nothing to kustomize
    assert make(bounds=RenderingBounds(seconds=7)).fingerprint in prints  # time decides no output
    assert make(helm=Path("/not/there")).fingerprint not in prints


@pytest.mark.parametrize(
    ("deed", "bounds", "fault"),
    [
        ("print 4", {"output": 3 * MIB}, "it prints more than 3 MiB"),
        ("memory 600", {"memory": 256 * MIB}, "it takes more than 256 MiB of memory"),
        ("same", {}, "it renders nothing"),
        ("same ---", {}, "it renders nothing"),
        ("say error: bad \x1b[31m \x07 thing", {}, r"bad \x1b[31m \x07 thing"),
    ],
)  # fmt: skip
def test_faults_of_files_are_told_and_kept(
    make: Making, files: RenderedFiles, counted: Counted, deed: str, bounds: dict[str, int], fault: str
) -> None:
    renderer, request = make(bounds=RenderingBounds(**bounds)), files.request({"a/deed": deed}, "a")
    came = renderer.rendered(request)
    assert (came.output, came.fault, came.lasting) == (b"", fault, True)
    assert came.hint
    assert make(bounds=RenderingBounds(**bounds)).rendered(request) == came
    assert len(counted.runs) == 1


def test_time_that_runs_out_is_tried_again_later(make: Making, files: RenderedFiles, counted: Counted) -> None:
    request, renderer = files.request({"a/deed": "spin"}, "a"), make(bounds=SHORT)
    came = renderer.rendered(request)
    assert came.fault.startswith("it takes more than") and came.hint and not came.lasting
    assert renderer.rendered(request) == came  # within seconds
    assert len(counted.runs) == 1
    assert make(bounds=SHORT).rendered(request) == came
    assert len(counted.runs) == 2


def test_without_a_program_it_says_what_to_do(make: Making, files: RenderedFiles, tmp_path: Path) -> None:
    renderer = make(kubectl=tmp_path / "kubectl")
    came = renderer.rendered(files.request({"a/deed": "same x"}, "a"))
    assert str(tmp_path / "kubectl") in came.fault and "--rendering-kubectl" in came.hint and not came.lasting
    assert renderer.version(Tool.KUSTOMIZE) == "" and renderer.version(Tool.HELM) == "v0.0.0-hostile"
    assert files.asked == 0


def test_a_script_is_no_program(make: Making, files: RenderedFiles, tmp_path: Path) -> None:
    script = tmp_path / "kubectl"
    script.write_text("#!/bin/sh\ntouch /tmp/x\n")
    script.chmod(0o755)
    assert "script" in make(kubectl=script).rendered(files.request({"a/deed": "same x"}, "a")).fault


def test_a_program_that_comes_later_is_found(
    make: Making, files: RenderedFiles, hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconciler.rendering.tools._AGAIN", 0.0)
    renderer, request = make(kubectl=tmp_path / "kubectl"), files.request({"a/deed": "same x"}, "a")
    assert renderer.rendered(request).fault
    (tmp_path / "kubectl").symlink_to(hostile)
    assert renderer.rendered(request).output


def test_without_a_sandbox_nothing_is_run(make: Making, files: RenderedFiles, tmp_path: Path) -> None:
    for among in ([], [Broken()]):
        came = make(among).rendered(files.request({"a/deed": f"write {tmp_path}/new"}, "a"))
        assert came.fault.startswith("nothing on this machine keeps kustomize from what it must not see")
        assert came.hint and not came.lasting
    assert not (tmp_path / "new").exists()


def test_the_second_sandbox_where_the_first_does_not_work(make: Making, files: RenderedFiles, counted: Counted) -> None:
    assert make([Broken(), counted]).rendered(files.request({"a/deed": "same x"}, "a")).output


def test_a_repository_that_is_away_is_nobodys_fault(make: Making, files: RenderedFiles) -> None:
    request = files.request({"a/deed": "same x"}, "a")

    def away() -> Any:
        raise RepositoryUnreadable("it is away")

    renderer = make()
    with pytest.raises(RepositoryUnreadable):
        renderer.rendered(request._replace(files=away))
    renderer.expect([request._replace(files=away)])
    assert renderer.rendered(request).output


def test_charts_that_draw_lots_say_so(make: Making, files: RenderedFiles, counted: Counted) -> None:
    renderer = make()
    came = renderer.rendered(files.request({"a/deed": "lots"}, "a", Tool.HELM))
    assert came.fault.startswith("two renderings of the same files differ") and came.lasting
    assert renderer.rendered(files.request({"a/deed": "same x"}, "a", Tool.HELM)).output
    assert len(counted.runs) == 4
    assert [run.arguments[:3] for run in counted.runs] == [("template", "a", ".")] * 4


def test_a_directory_without_files(make: Making, files: RenderedFiles) -> None:
    came = make().rendered(files.request({"b/deed": "same x"}, "a"))
    assert came.fault == "a is no directory with files" and came.lasting


def test_links_out_are_a_fault(make: Making, files: RenderedFiles, counted: Counted) -> None:
    came = make().rendered(files.request({"a/deed": "read a/l"}, "a", links={"a/l": "/etc/passwd"}))
    assert came.fault == "a/l is a symbolic link to '/etc/passwd', which leads out of the files that it may see"
    assert came.lasting and counted.runs == []


def test_a_disk_that_is_full_is_this_machines_fault(
    make: Making, files: RenderedFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("no directory")
    came = make().rendered(files.request({"a/deed": "same x"}, "a"))
    assert came.fault.startswith("kustomize could not be run here") and not came.lasting
    (tmp_path / "cache").unlink()


def test_a_fork_goes_on_with_it(make: Making, files: RenderedFiles) -> None:
    """As the processes do that read commits; nothing of theirs is left."""
    renderer = make()
    request = files.request({"a/deed": "same x"}, "a")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if renderer.rendered(request).output else 2
            renderer.close()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert renderer.rendered(request).output


def test_nowhere_says_so(files: RenderedFiles) -> None:
    given: Renders = NOWHERE
    given.expect([])
    came = given.rendered(files.request({"a/deed": "same x"}, "a"))
    assert (came.output, came.fault, came.lasting) == (b"", "kustomize is not run here", False)
    assert given.version(Tool.HELM) == ""
