"""Appear: a workspace that stands alone and is like others has its verdict at once."""

from __future__ import annotations

from reconciler.loading.phases.judgement import Go, Judgement


def appear(at: Judgement) -> Go | None:
    """Comes first, of a workspace of which nothing is stored. For whom it says nothing all other phases follow."""
    verdict = at.grounds.newcomers.verdict(at.case)
    if verdict is None:
        return None
    at.verdict = verdict
    return Go.DONE
