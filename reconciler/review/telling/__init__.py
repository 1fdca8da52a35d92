"""A review in the forms that people and forges read: text, JSON, YAML, Markdown, SARIF, GitHub's annotations.

Called by `treeplane diff`. Every form is a function from a review to a text, and makes harmless what strangers wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from reconciler.review.result import ChangeReview
from reconciler.review.telling import github, markdown, sarif, structured, text

FORMS: Mapping[str, Callable[[ChangeReview], str]] = {
    "text": text.told,
    "json": structured.as_json,
    "yaml": structured.as_yaml,
    "markdown": markdown.told,
    "sarif": sarif.told,
    "github": github.told,
}
"""By the name that `-o` takes."""
