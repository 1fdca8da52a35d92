"""Makes messages.json: `python -m apiserver.registry.facts.generate_messages <kubernetes-x.y-wire.json>`.

The input lists, for each message of a Kubernetes version, its fields as its .proto files and Go types declare them.
Lists and admission reviews are left out: no client sends them to an API server.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from apiserver.registry.facts.messages import INLINE, MAP, OMITEMPTY, POINTER, REPEATED

_FLAGS = {"repeated": REPEATED, "omitempty": OMITEMPTY, "pointer": POINTER, "inline": INLINE}
_LEFT_OUT = ("io.k8s.api.admission.", "io.k8s.api.apidiscovery.")


def distilled(wire: dict[str, list[dict[str, Any]]]) -> dict[str, list[list[Any]]]:
    """Fields as [number, json, type, flags]."""
    return {
        name: [_field(field) for field in fields]
        for name, fields in sorted(wire.items())
        if not name.startswith(_LEFT_OUT) and not (name.endswith("List") and name.removesuffix("List") in wire)
    }


def _field(field: dict[str, Any]) -> list[Any]:
    flags = sum(flag for name, flag in _FLAGS.items() if field.get(name))
    kind = field.get("type", "")
    if "map" in field:
        flags, kind = flags | MAP, field["map"][1]
    return [field["number"], field.get("json", ""), kind, flags]


def main(source: str) -> None:
    made = distilled(json.loads(Path(source).read_text()))
    lines = (f"{json.dumps(name)}:{json.dumps(fields, separators=(',', ':'))}" for name, fields in made.items())
    Path(__file__).with_name("messages.json").write_text("{" + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    main(sys.argv[1])
