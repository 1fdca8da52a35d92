"""What SOPS writes of an encrypted file beside its values: for whom, which values, and the MAC.

Called by document and sealing. None of it is authenticated but by what the MAC comes to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from apiserver.schema.scalars import compile_pattern
from reconciler.encryption.faults import UnfitFile

KEY = "sops"
READABLE = ("apiVersion", "kind", "metadata")
"""Fields by which an object is known: they are never encrypted."""
REMEDY = "write encrypted_regex: ^(data|stringData)$ into the rule of .sops.yaml, and encrypt the file anew"
_MOST, _LONGEST = 200, 1000
"""Recipients, and characters of an expression."""
_OTHERS = {
    "kms": "AWS KMS",
    "gcp_kms": "GCP KMS",
    "azure_kv": "Azure Key Vault",
    "hc_vault": "HashiCorp Vault",
    "pgp": "PGP",
}
_SELECTING = ("unencrypted_suffix", "encrypted_suffix", "unencrypted_regex", "encrypted_regex")
_COMMENTS = ("unencrypted_comment_regex", "encrypted_comment_regex")
_USUAL = "_unencrypted"


@dataclass(frozen=True)
class SelectedValues:
    """Which values of a file are encrypted: by `how`, one of SOPS' options, and what that says."""

    how: str = "unencrypted_suffix"
    said: str = _USUAL
    _known: dict[str, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, path: tuple[str, ...]) -> bool:
        """Of the value at a path of keys."""
        return self._matches(path) != self.how.startswith("un")

    def _matches(self, path: tuple[str, ...]) -> bool:
        return any(map(self._matches_key, path))

    def _matches_key(self, key: str) -> bool:
        """Remembered, since the keys above a value are those of many."""
        found = self._known.get(key)
        if found is None:
            suffix = self.how.endswith("suffix")
            found = key.endswith(self.said) if suffix else self._pattern.search(key) is not None
            self._known[key] = found
        return found

    @cached_property
    def _pattern(self) -> Any:
        return compile_pattern(self.said)

    def hidden(self) -> str:
        """The field that has to be readable and would be encrypted, "" where none would be."""
        paths = ((READABLE[0],), (READABLE[1],), (READABLE[2], "name"), (READABLE[2], "namespace"))
        return next((".".join(path) for path in paths if self(path)), "")


@dataclass(frozen=True)
class FileMetadata:
    """`keys`: by recipient the data key encrypted for it. `mac`: as it stands in the file; `modified`: what it is bound
    to; `mac_only_encrypted`: whether it counts nothing else."""

    keys: Mapping[str, str]
    selection: SelectedValues
    mac: str
    modified: str
    mac_only_encrypted: bool


def selection_of(found: Mapping[str, Any]) -> SelectedValues:
    """Of a file's metadata or a rule of .sops.yaml. Raises UnfitFile."""
    by_comment = next((name for name in _COMMENTS if found.get(name)), "")
    if by_comment:
        raise UnfitFile(f"{by_comment} is not read here", REMEDY)
    given = [name for name in _SELECTING if found.get(name)]
    if len(given) > 1:
        raise UnfitFile(f"{given[0]} and {given[1]} are both given", "keep one of them")
    if not given:
        return SelectedValues()
    text = found[given[0]]
    if not isinstance(text, str) or len(text) > _LONGEST:
        raise UnfitFile(f"{given[0]} is not text of at most {_LONGEST} characters")
    selection = SelectedValues(given[0], text)
    if given[0].endswith("regex"):
        try:
            compile_pattern(text)
        except ValueError as error:
            raise UnfitFile(f"{given[0]} is no expression: {error}", "it is written as for Go's regexp (RE2)") from None
    return selection


def metadata_of(found: Any) -> FileMetadata:
    """Of what a file says under `sops`, with all scalars as texts (tree.Documents.metadata). Raises UnfitFile."""
    if not isinstance(found, dict):
        raise UnfitFile("what stands under sops is not what SOPS writes", "encrypt the file anew")
    if found.get("shamir_threshold", "0") not in ("0", "1") or found.get("key_groups"):
        raise UnfitFile("it is encrypted for several key groups", "encrypt it for age recipients, in one group")
    entries = found.get("age")
    if not isinstance(entries, list) or not entries:
        others = " and ".join(words for name, words in _OTHERS.items() if found.get(name))
        raise UnfitFile(
            f"it is encrypted for {others or 'nobody'}, and only age is read here", "add an age recipient to it"
        )
    if len(entries) > _MOST:
        raise UnfitFile(f"it is encrypted for more than {_MOST} recipients", "give it fewer")
    keys = {}
    for entry in entries:
        recipient, sealed = (entry.get("recipient"), entry.get("enc")) if isinstance(entry, dict) else (None, None)
        if not isinstance(recipient, str) or not isinstance(sealed, str):
            raise UnfitFile("an age entry under sops lacks recipient or enc", "encrypt the file anew")
        keys[recipient] = sealed
    mac, modified = (found.get(name) for name in ("mac", "lastmodified"))
    if not isinstance(mac, str) or not isinstance(modified, str) or not mac:
        raise UnfitFile("sops.mac or sops.lastmodified is missing", "encrypt the file anew")
    return FileMetadata(keys, selection_of(found), mac, modified, found.get("mac_only_encrypted") == "True")
