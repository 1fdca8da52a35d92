"""YAML of kubeconfigs, with PyYAML or without: read by it where it is there, else by kubectl, which whoever uses this
has; written here, as plain blocks.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import yaml
except ModuleNotFoundError:  # as one file, on a machine that has nothing else
    yaml = None  # type: ignore[assignment]

_SECONDS = 30
_WORD = re.compile(r"[A-Za-z/](?:[A-Za-z0-9_./@+=-]|:(?=[A-Za-z0-9_./@+=-]))*")
_NO_TEXT = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null"})
"""Words that mean something else than themselves."""


class UnreadableYaml(Exception):
    """Why; without the file's name."""


def read(path: Path) -> Any:
    """What a kubeconfig holds. Raises UnreadableYaml, and OSError."""
    data = path.read_bytes()
    if data.lstrip().startswith(b"{"):
        try:
            return json.loads(data)
        except ValueError:
            pass  # YAML may begin so, too
    return _asked_of_kubectl(path) if yaml is None else _read(data)


def _read(data: bytes) -> Any:
    try:
        return yaml.load(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise UnreadableYaml(str(error)) from error


def _asked_of_kubectl(path: Path) -> Any:
    command = ["kubectl", "config", "view", "--raw", "--output=json", f"--kubeconfig={path}"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except FileNotFoundError:
        raise UnreadableYaml("kubectl, which reads it, is not on PATH") from None
    except subprocess.TimeoutExpired:
        raise UnreadableYaml(f"kubectl, which reads it, does not answer within {_SECONDS} s") from None
    if done.returncode != 0:
        raise UnreadableYaml(done.stderr.decode(errors="replace").strip())
    return json.loads(done.stdout)


def written(value: Any) -> str:
    """Of what JSON can say."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _below(f"{_scalar(key)}:", item, "" if isinstance(item, list) else "  ")
    elif isinstance(value, list) and value:
        for item in value:
            first, *rest = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _below(head: str, value: Any, indent: str) -> Iterator[str]:
    if not (isinstance(value, dict | list) and value):
        yield f"{head} {_scalar(value)}"
        return
    yield head
    yield from (f"{indent}{line}" for line in _lines(value))


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool | int | float | dict | list):
        return json.dumps(value)
    text = str(value)
    if _WORD.fullmatch(text) and text.lower() not in _NO_TEXT:
        return text
    return "".join(each if each.isprintable() else _spelled(each) for each in json.dumps(text, ensure_ascii=False))


def _spelled(unseen: str) -> str:
    """What YAML does not take as it is, or a terminal would obey."""
    number = ord(unseen)
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
