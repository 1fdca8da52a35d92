"""How sync targets are shown: `treeplane target list` and `describe`, as a table or text, JSON or YAML. Pure.

What others wrote does nothing to a terminal (plugin/saying).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from reconciler.commands.targeting.seen import TargetSeen

Object = dict[str, Any]

_HEAD = ("NAME", "WORKSPACE", "READY", "SINCE", "STATE", "PLACEMENTS", "CREDENTIALS END")
_UNKNOWN = "-"


def listed(targets: Sequence[TargetSeen], output: str) -> str:
    if output != "table":
        return _data({"targets": [_brief(each) for each in targets]}, output)
    if not targets:
        return "there are no sync targets: treeplane target add NAME --kubeconfig FILE"
    return table([_HEAD, *(_row(each) for each in targets)])


def described(target: TargetSeen, output: str, holders: Sequence[str] | None = None) -> str:
    """`holders`: of the Leases on the cluster, None where nobody asked it."""
    if output != "table":
        return _data({**_whole(target), **({"leases": list(holders)} if holders is not None else {})}, output)
    return "\n".join(_lines(target, holders))


def _lines(target: TargetSeen, holders: Sequence[str] | None) -> Iterable[str]:
    brief = _brief(target)
    yield f"Name:             {target.name}"
    yield f"Workspace:        {target.workspace}"
    yield f"Labels:           {', '.join(f'{k}={v}' for k, v in sorted(brief['labels'].items())) or _UNKNOWN}"
    yield f"Ready:            {target.ready} since {brief['since'] or _UNKNOWN}"
    yield f"State:            {target.taken or 'takes placements'}"
    yield f"Credentials end:  {target.ends or 'not known'}"
    for name, quantity in (target.value.get("status") or {}).get("allocatable", {}).items():
        yield f"Allocatable:      {name} {quantity}"
    if holders is not None:
        yield f"Leases:           {', '.join(holders) or 'nobody has one'}"
    yield "Conditions:"
    yield from (
        f"  {line}" for line in table([("TYPE", "STATUS", "REASON", "MESSAGE"), *_conditions(target)]).split("\n")
    )
    if target.namespaces is None or target.placements is None:
        yield "What runs there you may not read."
        return
    yield f"Placements:       {len(target.placements)}"
    yield from (f"  {p.workspace} {p.name}{' (has moved away)' if p.leaving else ''}" for p in target.placements)
    yield f"Namespaces:       {len(target.namespaces)}"
    yield from (f"  {n.workspace} {n.namespace}" for n in target.namespaces)


def _conditions(target: TargetSeen) -> list[tuple[str, ...]]:
    told = (target.value.get("status") or {}).get("conditions") or []
    return [(c["type"], c["status"], c.get("reason") or "", " ".join((c.get("message") or "").split())) for c in told]


def _row(target: TargetSeen) -> tuple[str, ...]:
    since = str(target.condition("Ready").get("lastTransitionTime") or _UNKNOWN)
    count = _UNKNOWN if target.placements is None else str(len(target.placements))
    return target.name, target.workspace, target.ready, since, target.taken or "open", count, target.ends or _UNKNOWN


def _brief(target: TargetSeen) -> Object:
    return {
        "name": target.name,
        "workspace": target.workspace,
        "labels": target.value["metadata"].get("labels") or {},
        "ready": target.ready,
        "since": target.condition("Ready").get("lastTransitionTime") or "",
        "state": target.taken or "open",
        "placements": None if target.placements is None else len(target.placements),
        "credentialsEnd": target.ends,
    }


def _whole(target: TargetSeen) -> Object:
    status = target.value.get("status") or {}
    parts = (("placements", target.placements), ("namespaces", target.namespaces))
    runs = {name: None if found is None else [each._asdict() for each in found] for name, found in parts}
    return {**_brief(target), **runs, "conditions": status.get("conditions") or []}


def table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _data(value: Object, output: str) -> str:
    return json.dumps(value, indent=2) if output == "json" else yaml.safe_dump(value, sort_keys=False).rstrip("\n")
