"""What every test may use: `eventually`, which polls a condition with a deadline instead of sleeping, and the option
--update-golden, the programs sops, helm, promtool and kubectl, and one that stands for a hostile renderer.

Real clusters are the matter of e2e/conftest.py.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import settings
from realclusters import binaries, helmbinary, hostilebinary, promtoolbinary, sopsbinary
from realclusters.binaries import Unavailable

from apiserver.logs.records import OURS, LogHandler

T = TypeVar("T")

# Two busy cores make single examples slow without making them wrong.
settings.register_profile("treeplane", deadline=None)
settings.load_profile("treeplane")


class Eventually:
    """Call it with a condition: `eventually(lambda: store.get(key))` returns the first true value."""

    def __call__(self, condition: Callable[[], T], seconds: float = 30.0, what: str = "") -> T:
        """Poll until `condition` returns something true; AssertionError with its last answer after `seconds`, which
        are for a machine that has stood still for some of them.

        A condition that raises AssertionError counts as not yet true; its text is shown when the time is up.
        """
        deadline = time.monotonic() + seconds
        pause = 0.005
        while True:
            value: T | None = None
            try:
                value = condition()
                if value:
                    return value
                last = repr(value)
            except AssertionError as error:
                last = str(error)
            if time.monotonic() > deadline:
                pytest.fail(f"not within {seconds:g} s: {what or 'the condition'}; the last answer was: {last}")
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew instead of comparing")


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def sops() -> Path:
    """The program sops; without it a test is skipped by name."""
    try:
        return sopsbinary.find()
    except Unavailable as error:
        pytest.skip(f"no sops: {error}")


@pytest.fixture(scope="session")
def helm() -> Path:
    """The program helm; without it a test is skipped by name."""
    try:
        return helmbinary.find()
    except Unavailable as error:
        pytest.skip(f"no helm: {error}")


@pytest.fixture(scope="session")
def promtool() -> Path:
    """The program promtool; without it a test is skipped by name, and fails in CI."""
    try:
        return promtoolbinary.find()
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no promtool: {error}")
        pytest.skip(f"no promtool: {error}")


@pytest.fixture(scope="session")
def kubectl_program() -> Path:
    """The program kubectl, which has kustomize; without it a test is skipped by name."""
    try:
        return Path(binaries.find().kubectl)
    except Unavailable as error:
        pytest.skip(f"no kubectl: {error}")


@pytest.fixture(scope="session")
def hostile() -> Path:
    """A program that does what it is told to, good or bad; without it a test is skipped by name."""
    try:
        return hostilebinary.find()
    except Unavailable as error:
        pytest.skip(f"no hostile renderer: {error}")


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """A test may have a command or a process set up its log in this process, which is every other test's, too."""
    loggers = [logging.getLogger(name) for name in ("", *OURS)]
    levels, last = [each.level for each in loggers], logging.lastResort
    hooks = sys.excepthook, threading.excepthook
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
        for handler in [each for each in logger.handlers if isinstance(each, LogHandler)]:
            logger.removeHandler(handler)
    logging.lastResort = last
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(capture=False)


@pytest.fixture(scope="session")
def eventually() -> Eventually:
    return Eventually()
