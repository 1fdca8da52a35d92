"""What `treeplane status` and `treeplane reconcile-now` print. Texts are others' to choose (a commit's errors, what a
remote says, names), so each line is made harmless here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from apiserver.complaints.complaint import Complaint, Complaints
from apiserver.model.commits import shortened
from apiserver.model.counts import counted
from apiserver.model.plaintext import plain

_WIDTH = 700
_ID = 10


def table(found: Complaints) -> str:
    return "".join(f"{plain(line, _WIDTH)}\n" for line in _lines(found))


def _lines(found: Complaints) -> Iterator[str]:
    at = f" at {shortened(found.commit, _ID)}" if found.commit else ""
    some = counted(found.workspaces, "workspace is ", "workspaces are ") if found.workspaces else ""
    served = f"{some}served{at}"
    if not found.listed:
        yield f"nothing is wrong; {served}" if found.workspaces or found.commit else "nothing is wrong"
    wide = max((len(each.kind) for each in found.listed), default=0)
    kinds = list(dict.fromkeys(each.kind for each in found.listed))
    for kind in kinds:
        for each in found.listed:
            if each.kind == kind:
                yield from _complaint(each, wide)
        if more := found.more.get(kind):
            yield f"{kind:{wide}}  and {more} more"
    for unseen in found.unseen:
        yield f"not looked at: {unseen}"


def _complaint(each: Complaint, wide: int) -> Iterator[str]:
    yield f"{each.kind:{wide}}  {each.where}: {each.what}"
    if each.command:
        yield f"{'':{wide}}    {each.command}"


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2) + "\n"


def _yaml(document: dict[str, Any]) -> str:
    text: str = yaml.safe_dump(document, sort_keys=False, width=120)
    return text


DATA: dict[str, Callable[[dict[str, Any]], str]] = {"json": _json, "yaml": _yaml}
FORMS = ("table", *DATA)


def told(found: Complaints, form: str) -> str:
    """`form`: one of FORMS."""
    return table(found) if form == "table" else DATA[form](found.document())
