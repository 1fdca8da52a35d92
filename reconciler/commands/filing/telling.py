"""How it is told what a command wrote, or would write. Values of Secrets are masked unless they are asked for.

Called by the command line, through `line/filingoptions`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import yaml

from reconciler.commands.filing.asked import Filed, FiledFile
from reconciler.layout.dump import dump
from reconciler.layout.errors import BadFile
from reconciler.layout.yamldoc import roots
from reconciler.loading.changeset import ChangeKind

Object = dict[str, Any]

MASK = "*****"
_VALUES = ("data", "stringData")
_KINDS = ("Secret", "SecretList", "List")
_DIGITS = 10


def told(filed: Filed, output: str, *, secrets: bool = False) -> str:
    """`table`, `json` or `yaml`; of a dry run `yaml` is the files themselves. `secrets`: values of Secrets, too."""
    if output == "table":
        return "".join(f"{line}\n" for line in _lines(filed))
    if output == "yaml" and filed.dry:
        return "---\n".join(_shown(file, secrets) for file in filed.files)
    found: Object = {"files": [_entry(file, filed.dry, secrets) for file in filed.files], "dryRun": filed.dry}
    if not filed.dry:
        found |= {"commit": filed.commit, "pushed": filed.pushed, "answer": filed.answer}
    found["notes"] = filed.notes
    return json.dumps(found, indent=2) + "\n" if output == "json" else yaml.safe_dump(found, sort_keys=False)


def _lines(filed: Filed) -> Iterator[str]:
    for file in filed.files:
        yield f"{file.where} {file.change}{' (dry run)' if filed.dry else ''}"
    if filed.commit and filed.pushed:
        yield f"commit {filed.commit[:_DIGITS]} is pushed to {filed.pushed}"
    elif filed.commit:
        yield f"they are in commit {filed.commit[:_DIGITS]}: git push"
    yield from filed.answer
    yield from filed.notes


def _entry(file: FiledFile, dry: bool, secrets: bool) -> Object:
    found: Object = {"where": file.where, "change": str(file.change)}
    if dry:
        found["content"] = None if file.data is None else _text(file, file.data, secrets)
    return found


def _shown(file: FiledFile, secrets: bool) -> str:
    if file.data is None:
        return f"# {file.where} {ChangeKind.DELETED}\n"
    text = _text(file, file.data, secrets)
    return f"# {file.where}\n{text}" + ("" if text.endswith("\n") else "\n")


def _text(file: FiledFile, data: bytes, secrets: bool) -> str:
    if secrets or not (file.hidden or b"Secret" in data):
        return data.decode("utf-8", "replace")
    try:
        documents = [each.value for each in roots(data, file.where)]
    except BadFile:
        documents = []
    if not documents or not all(each.get("kind") in _KINDS for each in documents if file.hidden):
        return f"# {len(data)} bytes, not shown\n" if file.hidden else data.decode("utf-8", "replace")
    if not any(_tells(each) for each in documents):
        return data.decode("utf-8", "replace")
    return "---\n".join(dump(_masked(each)).decode() for each in documents)


def _tells(value: Object) -> bool:
    """Whether an object is a Secret that stands there as it is, or a list with one."""
    items = value.get("items")
    if isinstance(items, list):
        return any(_tells(each) for each in items if isinstance(each, dict))
    return value.get("kind") == "Secret" and "sops" not in value


def _masked(value: Object) -> Object:
    items = value.get("items")
    if isinstance(items, list):
        return {**value, "items": [_masked(each) if isinstance(each, dict) else MASK for each in items]}
    if not _tells(value):
        return value
    hidden = {part: dict.fromkeys(value[part], MASK) for part in _VALUES if isinstance(value.get(part), dict)}
    rest = {key: MASK if key in _VALUES else each for key, each in value.items()}
    return {**rest, **hidden}
