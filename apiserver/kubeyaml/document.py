"""The first document of YAML from a stranger, as a value. Called for bodies of requests and for kubeconfigs."""

from __future__ import annotations

from typing import Any

import yaml

from apiserver.kubeyaml.construct import Construction
from apiserver.kubeyaml.faults import Fault, Twice, syntax, too_deep
from apiserver.kubeyaml.nodes import nodes

_ALIASES = 256 * 1024
"""Characters that aliases may add to a document: they multiply."""


def first(data: bytes) -> Any:
    """Of keys that stand twice the last counts. None of nothing. Raises Fault."""
    faults: list[Fault] = []
    try:
        root = next(iter(nodes(data, resolving=False)), None)
        found = None if root is None else Construction(faults, 2 * len(data) + _ALIASES).value(root)
    except RecursionError:
        raise too_deep(None) from None
    except yaml.YAMLError as error:
        raise syntax(error, data) from None
    wrong = next((fault for fault in faults if not isinstance(fault, Twice)), None)
    if wrong is not None:
        raise wrong
    return found
