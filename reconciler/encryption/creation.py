"""`.sops.yaml`: for whom a new file is encrypted, and which of its values, by the first of its rules that fits.

Called by whoever writes files, with what the nearest `.sops.yaml` says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apiserver.schema.scalars import compile_pattern
from reconciler.encryption.agekeys import are_recipients
from reconciler.encryption.faults import UnfitFile
from reconciler.encryption.metadata import REMEDY, SelectedValues, selection_of

NAME = ".sops.yaml"
_OTHERS = ("kms", "pgp", "gcp_kms", "azure_keyvault", "hc_vault_transit_uri", "hc_vault", "azure_kv")
_LONGEST, _MOST = 1000, 200


@dataclass(frozen=True, slots=True)
class Creation:
    """How a new file is encrypted."""

    recipients: tuple[str, ...]
    selection: SelectedValues
    mac_only_encrypted: bool


def creation_of(said: Any, path: str) -> Creation | None:
    """For a file, by its path from the directory of `.sops.yaml`; None where no age recipient is named for it. `said`:
    what that holds. Raises UnfitFile."""
    rules = said.get("creation_rules") if isinstance(said, dict) else None
    rule = next((each for each in rules if _fits(each, path)), None) if isinstance(rules, list) else None
    if rule is None:
        return None
    groups = rule.get("key_groups") or [rule]
    if not isinstance(groups, list) or not all(isinstance(each, dict) for each in groups):
        raise UnfitFile("key_groups is no list of groups")
    recipients = tuple(dict.fromkeys(each for group in groups for each in _recipients(group.get("age"))))
    if not recipients:
        return None
    if len(groups) > 1:
        raise UnfitFile("it names several key groups", "name age recipients, in one group")
    other = next((name for name in _OTHERS if groups[0].get(name) or rule.get(name)), "")
    if other:
        raise UnfitFile(
            f"it names keys of {other} beside age, and nothing is encrypted for those here", "name age alone"
        )
    if len(recipients) > _MOST or not are_recipients(recipients):
        raise UnfitFile("what it names under age are not recipients of age's, which begin with age1")
    selection = selection_of(rule)
    hidden = selection.hidden()
    if hidden:
        raise UnfitFile(f"by it {hidden} would be encrypted, and nobody could tell which object that is", REMEDY)
    return Creation(recipients, selection, bool(rule.get("mac_only_encrypted")))


def _fits(rule: Any, path: str) -> bool:
    pattern = rule.get("path_regex") if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or pattern is None or pattern == "":
        return isinstance(rule, dict)
    if not isinstance(pattern, str) or len(pattern) > _LONGEST:
        raise UnfitFile(f"path_regex is not text of at most {_LONGEST} characters")
    try:
        return compile_pattern(pattern).search(path) is not None
    except ValueError as error:
        raise UnfitFile(f"path_regex is no expression: {error}", "it is written as for Go's regexp (RE2)") from None


def _recipients(found: Any) -> Iterator[str]:
    """A text with commas, or a list of such."""
    texts = found if isinstance(found, list) else [found]
    for text in texts:
        yield from (each.strip() for each in text.split(",") if each.strip()) if isinstance(text, str) else ()
