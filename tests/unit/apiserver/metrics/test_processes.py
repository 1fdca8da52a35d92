"""Several processes count, and a scrape of any tells of all: of those that ended, what they counted and no more."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from support.counted import Series, series, total

from apiserver.metrics import library, pending, place
from apiserver.metrics.definition import OTHER, CountMetric, LevelMetric, TimeMetric

PROGRAM = textwrap.dedent("""
    import sys
    from pathlib import Path
    from apiserver.metrics import pending, place
    import apiserver.metrics.store
    from apiserver.metrics.queues import ADDS, DEPTH, WORK
    place.begin(Path(sys.argv[1]), sys.argv[2])
    for line in sys.stdin:
        ADDS.add("q", by=float(line))
        DEPTH.set(float(line), "q")
        WORK.took(float(line), "q")
        pending.flush()
        print(len(list(Path(sys.argv[1]).glob("metrics/*.db"))), flush=True)
    from apiserver.metrics import library
    print(library.text(()).decode())
""")


class Counting:
    """A process that counts what it is told, and says what it would answer when it is told nothing more."""

    def __init__(self, data: Path, name: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(data), name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdin is not None
        self.pipe = self.process.stdin

    def count(self, number: float) -> int:
        self.pipe.write(f"{number}\n")
        self.pipe.flush()
        assert self.process.stdout is not None
        return int(self.process.stdout.readline())

    def scraped(self) -> Series:
        text, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return series(text)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def begin(tmp_path: Path) -> Callable[[str], Counting]:
    place.empty(tmp_path)
    return lambda name: Counting(tmp_path, name)


def test_a_scrape_of_one_tells_of_all_and_a_killed_one_leaves_no_gauge(
    tmp_path: Path, begin: Callable[[str], Counting]
) -> None:
    one, two = begin("api-1"), begin("api-2")
    one.count(2)
    two.count(5)
    assert place.processes(tmp_path / "metrics") == {"api-1": one.process.pid, "api-2": two.process.pid}
    one.kill()
    place.ended(tmp_path, "api-1")
    assert place.processes(tmp_path / "metrics") == {"api-2": two.process.pid}
    found = two.scraped()
    assert total(found, "workqueue_adds_total", name="q") == 7
    assert total(found, "workqueue_work_duration_seconds_count", name="q") == 2
    assert total(found, "workqueue_work_duration_seconds_sum", name="q") == 7
    assert total(found, "workqueue_work_duration_seconds_bucket", name="q", le="2.5") == 1
    assert total(found, "workqueue_depth", name="q") == 5


def test_one_that_is_started_again_goes_on_and_no_file_is_added(begin: Callable[[str], Counting]) -> None:
    first = begin("reconciler")
    files = first.count(2)
    first.kill()
    again = begin("reconciler")
    assert again.count(3) == files
    found = again.scraped()
    assert (total(found, "workqueue_adds_total"), total(found, "workqueue_depth")) == (5, 3)


def test_what_has_no_labels_is_there_before_it_is_counted(begin: Callable[[str], Counting]) -> None:
    found = begin("api-1").scraped()
    assert found["treeplane_store_commit_failures_total", frozenset()] == 0


def test_a_server_that_starts_begins_anew(tmp_path: Path) -> None:
    place.empty(tmp_path)
    (tmp_path / "metrics" / "counter_api-1.db").write_bytes(b"of another start")
    place.empty(tmp_path)
    assert [*(tmp_path / "metrics").iterdir()] == []
    assert (tmp_path / "metrics").stat().st_mode & 0o777 == 0o700


def test_a_process_without_a_place_counts_for_itself(tmp_path: Path) -> None:
    process = Counting(tmp_path, "api-1")
    assert process.count(4) == 0
    assert total(process.scraped(), "workqueue_adds_total") == 4


def test_there_are_no_more_series_than_a_metric_may_have() -> None:
    counts = CountMetric("test_bounded_total", "Of this test.", ("what",), most=2)
    levels = LevelMetric("test_level", "Of this test.", ("what",))
    times = TimeMetric("test_seconds", "Of this test.", bounds=(1.0, 2.0))
    for what in "abcd":
        counts.add(what)
        levels.move(1, "all")
    levels.move(-1, "all")
    for seconds in (0.5, 1.0, 1.5, 9.0):
        times.took(seconds)
    pending.flush()
    found = series(library.text(()).decode())
    assert total(found, "test_bounded_total") == 4
    assert total(found, "test_bounded_total", what=OTHER) == 2
    assert total(found, "test_level", what="all") == 3
    assert [total(found, "test_seconds_bucket", le=le) for le in ("1.0", "2.0", "+Inf")] == [2, 3, 4]
    assert total(found, "test_seconds_sum") == 12
