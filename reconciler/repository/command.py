"""Running the git command line: for what needs the user's credentials and host keys, and for packs.

Called by mirror and write. The environment is the user's without the variables that point git at another repository.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from reconciler.repository.errors import RepositoryUnreadable, redact

_FOREIGN = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
)


class Answer(NamedTuple):
    """What a git command said. `error` has no credentials in it."""

    code: int
    output: str
    error: str


def git(
    git_dir: Path, *arguments: str, given: bytes = b"", settings: Mapping[str, str] | None = None, timeout: float = 600
) -> Answer:
    """Runs git on `git_dir`. `settings` reach it as configuration through the environment, so no argument list shows
    them. Raises RepositoryUnreadable when git is absent or takes longer than `timeout` seconds."""
    env = {k: v for k, v in os.environ.items() if k not in _FOREIGN}
    env |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    pairs = dict(settings or {})
    # Behind the user's own, which may be what names his credentials.
    before = int(env.get("GIT_CONFIG_COUNT") or 0)
    env["GIT_CONFIG_COUNT"] = str(before + len(pairs))
    for number, (key, value) in enumerate(pairs.items(), before):
        env[f"GIT_CONFIG_KEY_{number}"], env[f"GIT_CONFIG_VALUE_{number}"] = key, value
    try:
        done = subprocess.run(
            ["git", f"--git-dir={git_dir}", *arguments],
            input=given,
            capture_output=True,
            env=env,
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise RepositoryUnreadable("the git command is not installed", "install git 2.31 or later") from error
    except subprocess.TimeoutExpired as error:
        raise RepositoryUnreadable(f"git {arguments[0]} gave no answer in {timeout:.0f} seconds") from error
    return Answer(
        done.returncode, done.stdout.decode("utf-8", "replace"), redact(done.stderr.decode("utf-8", "replace").strip())
    )
