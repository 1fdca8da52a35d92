"""A review for programs: one object, as JSON or YAML. See telling.

Nothing is cut, and texts are as they are, but for terminals' sake without bytes that are no characters.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import yaml

from reconciler.loading.renames import REMEDY
from reconciler.plan.deletions import RefusedDeletion, command
from reconciler.review.fields import ABSENT, HIDDEN, FieldChange
from reconciler.review.result import (
    ChangeReview,
    ObjectDifference,
    ObjectName,
    ReviewedCommit,
    TargetDifference,
    WorkspaceDifference,
)
from reconciler.review.telling.harmless import quoted
from reconciler.review.telling.words import summary

Object = dict[str, Any]


def as_json(review: ChangeReview) -> str:
    return json_of(told(review))


def as_yaml(review: ChangeReview) -> str:
    return yaml_of(told(review))


def json_of(found: Object) -> str:
    """In ASCII: what is no character, and what a terminal acts on, is escaped."""
    return quoted(json.dumps(found, indent=2), "\\u%04x") + "\n"


def yaml_of(found: Object) -> str:
    """The same as YAML."""
    return quoted(str(yaml.dump(found, Dumper=_Dumper, sort_keys=False, width=10**9)), "\\x%02x")


class _Dumper(yaml.SafeDumper):
    """A text stands on the line of its key, in double quotes where a runner or a terminal might act on it."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None if text.isprintable() and "##" not in text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def told(review: ChangeReview) -> Object:
    base, target = review.commits
    return {
        "from": {"name": review.base, "commit": str(base)},
        "to": {"name": review.target, "commit": str(target)},
        "summary": summary(review),
        "held": review.holds,
        "settings": [_field(each) for each in review.settings],
        "workspaces": [_workspace(each) for each in review.workspaces],
        "syncTargets": [_target(each) for each in review.targets],
        "problems": [each.as_json() for each in review.problems],
        "waiting": [{"for": path, "workspaces": [*those]} for path, those in sorted(review.waiting.items())],
        "deletions": [_deletion(*each) for each in sorted(review.refused.items())],
        "renames": [{"from": old, "to": new, "remedy": REMEDY} for old, new in sorted(review.renames.items())],
        "warnings": [asdict(each) for each in review.warnings],
        "notes": list(review.notes),
        "commits": [_commit(each) for each in review.brings],
    }


def _commit(found: ReviewedCommit) -> Object:
    out: Object = {"commit": found.id, "author": found.author, "subject": found.subject}
    return out | {"pushedBy": found.by.as_json() or None}


def _workspace(found: WorkspaceDifference) -> Object:
    out: Object = {"path": found.path, "change": str(found.change)}
    out |= {"movedFrom": found.moved_from} if found.moved_from else {}
    out |= {"objects": [_object(each) for each in found.objects]} if found.objects else {}
    out |= {"others": found.others} if found.others else {}
    return out | ({"problems": [each.as_json() for each in found.why]} if found.why else {})


def _object(found: ObjectDifference) -> Object:
    out = {**_name(found.object), "change": str(found.change), "file": found.file}
    return out | ({"fields": [_field(each) for each in found.fields]} if found.fields else {})


def _name(name: ObjectName) -> Object:
    out = {"kind": name.kind, "resource": name.resource, "name": name.name}
    return out | ({"namespace": name.namespace} if name.namespace else {})


def _field(change: FieldChange) -> Object:
    sides = {"from": change.before, "to": change.after}
    out: Object = {"field": change.field}
    out |= {side: said for side, said in sides.items() if said not in (ABSENT, HIDDEN)}
    if HIDDEN in sides.values():
        out["hidden"] = [side for side, said in sides.items() if said is HIDDEN]
    return out


def _target(found: TargetDifference) -> Object:
    copies = (
        {"verb": c.verb, "workspace": c.object.workspace, **_name(c.object), "placement": c.placement, "why": c.why}
        for c in found.copies
    )
    return {"target": found.target, "copies": list(copies)}


def _deletion(path: str, refused: RefusedDeletion) -> Object:
    digest = refused.digest
    lines = refused.lines()
    return {"workspace": path, "reason": refused.why, "hash": digest, "command": command([digest]), "lines": lines}
