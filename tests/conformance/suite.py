"""Runs of the suite's program: several at once, each with its share of the tests, and what came of them.

A run keeps its output and a JUnit report in a folder. Used by __main__.py; the server is its.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

FLAGS = (
    "--provider=skeleton",
    "--allowed-not-ready-nodes=-1",  # waits for no node and no daemon
    "--minStartupPods=-1",
    "--num-nodes=0",
    "--dump-logs-on-failure=false",
    "--disable-log-dump",
    "--ginkgo.no-color",
    "--ginkgo.v",
)
SERIAL = "[Serial]"
"""What stands in the names of tests that change what others rely on: a node's taints, which class is the default."""
_LABELS = re.compile(r" \[[^\[\]]*\]$")
"""What a report appends to a test's name."""


def all_names(program: Path) -> list[str]:
    """Of the suite's tests, sorted."""
    done = subprocess.run([program, "--list-tests"], capture_output=True, text=True, check=True)
    return sorted(set(re.findall(r"^ +\S+\.go:\d+: (.*)$", done.stdout, re.MULTILINE)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one test. `why`: what it failed with, "" if it passed."""

    name: str
    seconds: float
    why: str = ""

    def __str__(self) -> str:
        line = f"{'FAILED' if self.why else 'passed':7}{self.seconds:6.1f} s  {self.name}"
        return f"{line}\n    {self.why.splitlines()[0]}" if self.why else line


@dataclass(frozen=True, slots=True)
class Suite:
    """The program with what every run of it needs."""

    program: Path
    module: Path
    kubectl: str
    kubeconfig: Path
    logs: Path

    def run(self, names: list[str], workers: int, minutes: int) -> list[Outcome]:
        """Each of `names` once, dealt out to so many processes, those that want to be alone after the others; those
        that did not run have failed."""
        together = [name for name in names if SERIAL not in name]
        alone = [name for name in names if SERIAL in name]
        shares = [share for share in (*(together[i::workers] for i in range(workers)), alone) if share]
        numbered = list(enumerate(shares))
        last = len(shares) - bool(alone)
        for part in (numbered[:last], numbered[last:]):
            self._run(part, minutes)
        outcomes = {o.name: o for number in range(len(shares)) for o in self._report(number)}
        return [outcomes.get(name) or Outcome(name, 0.0, "it did not run") for name in names]

    def _run(self, shares: list[tuple[int, list[str]]], minutes: int) -> None:
        processes = [self._start(number, share, minutes) for number, share in shares]
        try:
            for process in processes:
                process.wait()
        finally:
            for process in processes:
                _end(process)

    def _start(self, number: int, names: list[str], minutes: int) -> subprocess.Popen[bytes]:
        folder = self.logs / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        focus = [f"--ginkgo.focus={re.escape(name)}$" for name in names]
        command = [
            str(self.program),
            f"--kubeconfig={self.kubeconfig}",
            f"--repo-root={self.module}",
            f"--kubectl-path={self.kubectl}",
            *FLAGS,
            f"--ginkgo.timeout={minutes}m",
            f"--ginkgo.junit-report={folder / 'junit.xml'}",
            *focus,
        ]
        home = {**os.environ, "HOME": str(folder)}  # kubectl's cache of discovery among them
        with (folder / "output.log").open("wb") as output:
            return subprocess.Popen(
                command, cwd=folder, env=home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def _report(self, number: int) -> list[Outcome]:
        report = self.logs / str(number) / "junit.xml"
        if not report.exists():
            return []
        found = []
        for case in ElementTree.parse(report).iter("testcase"):
            name = _LABELS.sub("", (case.get("name") or "").removeprefix("[It] "))
            if case.find("skipped") is None:
                wrong = case.find("failure")
                wrong = case.find("error") if wrong is None else wrong
                why = "" if wrong is None else wrong.get("message") or wrong.text or "no reason given"
                found.append(Outcome(name, float(case.get("time") or 0), why))
        return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """An interrupt lets it take its namespaces away."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()
        process.wait()
