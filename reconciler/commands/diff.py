"""`treeplane diff`: what a change does, before anybody serves it. Works in a clone, without a server.

Called by the command line. What is compared is review/ends', what it does review/foresight's, how it is told
review/telling's.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path

from reconciler.commands.clone import opened
from reconciler.commands.failure import Failure
from reconciler.commands.rendering import renderer_of_user
from reconciler.repository.errors import RepositoryError
from reconciler.review.ends import CommitRange, find
from reconciler.review.made import review
from reconciler.review.result import ChangeReview
from reconciler.review.revisions import BadRange

DIFFERENT, HELD, FAILED = 1, 3, 4
"""Exit codes: something would be another; something would be held; it could not be found out."""


def compare(directory: Path, asked: str, folder: str = "") -> ChangeReview:
    """Of the clone that a directory is in. `asked`: `A..B`, `A...B`, `A`; "" for what is served and the work tree.
    `folder`: see clone.opened."""
    clone, top = opened(directory, folder)
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        try:
            ends = find(clone, top, CommitRange.parse(asked), Path(scratch) / "repo")
            with closing(renderer_of_user()) as renders:
                return review(ends, Path(scratch), renders)
        except BadRange as error:
            raise Failure(str(error), error.hint, 2) from error
        except RepositoryError as error:
            raise Failure(str(error), code=FAILED) from error


def exit_code(found: ChangeReview) -> int:
    return HELD if found.holds else DIFFERENT if found.differs else 0
