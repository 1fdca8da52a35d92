"""A review for a pull request's comment. See telling.

At most as long as forges take. What strangers wrote stands in code alone, where Markdown, mentions, links and tags mean
nothing, and no line of ours begins with it.
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.model.counts import counted
from reconciler.loading.consequences import waiting_lines
from reconciler.loading.renames import REMEDY
from reconciler.plan.deletions import command
from reconciler.review.result import ChangeReview, ObjectDifference, TargetDifference, WorkspaceDifference
from reconciler.review.telling.harmless import code, fenced
from reconciler.review.telling.words import by_rule, commit_line, copy_line, cut, field_lines, others, summary

MOST = 65_000
"""Characters: GitHub takes 65,536, and others no fewer."""
_SPARE = 400
_FIELDS = 60
_LISTED = 50
_SIGNS = {"gets": "+", "loses": "-", "changes": " "}


def told(review: ChangeReview) -> str:
    """The parts that fit, and how many there are besides."""
    out, left = [f"**{summary(review)}**\n\n{_ends(review)}\n"], MOST - _SPARE
    left -= len(out[0])
    missing = 0
    for part in _parts(review):
        if len(part) + 1 > left:
            missing += 1
        else:
            out.append(part)
            left -= len(part) + 1
    if missing:
        out.append(f"…and {counted(missing, 'more part')}: `treeplane diff` shows all of it.\n")
    return "\n".join(out)


def _ends(review: ChangeReview) -> str:
    return f"from {code(review.base)} to {code(review.target)}"


def _parts(review: ChangeReview) -> Iterator[str]:
    """What is wrong comes first, since it may be all that fits."""
    errors = [f"- {code(str(each))}" for each in review.problems]
    if errors:
        yield _block("### Nothing of it would be served", cut(errors, _LISTED, "error"))
    for workspace in review.workspaces:
        if workspace.why:
            yield _held(workspace)
    if review.waiting:
        waiting = (f"- {code(line)}" for line in waiting_lines(review.waiting))
        yield _block("### Held for another's mistake", cut(waiting, _LISTED, "workspace"))
    if review.refused:
        yield _block("### To be allowed first", _deletions(review))
    warnings = [f"- {_place(each.path, each.file)}{code(each.text)}" for each in review.warnings]
    warnings += [f"- {code(old)} does not move to {code(new)}: {REMEDY}" for old, new in sorted(review.renames.items())]
    if warnings:
        yield _block("### Warnings", cut(warnings, _LISTED, "warning"))
    for target in review.targets:
        yield _block(f"### Sync target {code(target.target)}", _copies(target))
    if review.settings:
        lines = [line for change in review.settings for line in field_lines(change)]
        yield _block("### treeplane.yaml configured", iter(fenced([*cut(lines, _FIELDS, "line")], "diff")))
    for workspace in review.workspaces:
        if not workspace.why:
            yield _workspace(workspace)
    if review.brings:
        lines = [f"- {code(commit_line(each))}" for each in review.brings]
        yield _block("### Commits", cut(lines, _LISTED, "commit"))
    if review.notes:
        yield _block("", (f"- {code(note)}" for note in review.notes))


def _copies(found: TargetDifference) -> Iterator[str]:
    for rule, copies in by_rule(found):
        yield code(rule)
        yield ""
        yield from fenced([f"{_SIGNS[each.verb]} {copy_line(each)}" for each in copies[:_LISTED]], "diff")
        if len(copies) > _LISTED:
            yield f"and {counted(len(copies) - _LISTED, 'more copy')}"
        yield ""


def _place(path: str, file: str) -> str:
    return "".join(f"{code(part)}: " for part in (path, file) if part)


def _block(heading: str, lines: Iterator[str]) -> str:
    return "\n".join([*([heading, ""] if heading else []), *lines, ""])


def _held(found: WorkspaceDifference) -> str:
    errors = (f"- {code(str(each))}" for each in found.why)
    return _block(f"### Workspace {code(found.path)} would be held", cut(errors, _LISTED, "error"))


def _workspace(found: WorkspaceDifference) -> str:
    moved = f" from {code(found.moved_from)}" if found.moved_from else ""
    heading = f"<details><summary>Workspace {code_in_html(found.path)} {found.change}</summary>"
    lines = [line for each in found.objects for line in _object(each)]
    shown = [*cut(lines, _LISTED * 6, "line"), *([f"  {others(found)}"] if found.others else [])]
    origin = [f"It comes{moved}.", ""] if moved else []
    return "\n".join([heading, "", *origin, *(fenced(shown, "diff") if shown else []), "", "</details>", ""])


def code_in_html(text: str) -> str:
    """As code within a tag of HTML, where Markdown is not read."""
    shown = "".join(c if c.isalnum() or c in ":-._/" else f"&#{ord(c)};" for c in text)
    return f"<code>{shown}</code>"


def _object(found: ObjectDifference) -> Iterator[str]:
    sign = {"created": "+", "deleted": "-"}.get(str(found.change), " ")
    yield f"{sign} {found.object} {found.change}" + (f" ({found.file})" if found.file else "")
    lines = [line for change in found.fields for line in field_lines(change)]
    yield from (f"{line[:1]}   {line[2:]}" for line in cut(lines, _FIELDS, "line"))


def _deletions(review: ChangeReview) -> Iterator[str]:
    for path, refused in sorted(review.refused.items()):
        yield f"Of {code(path)}, {code(refused.why)}:"
        yield ""
        yield from fenced([f"- {line}" for line in cut(refused.lines(), _LISTED, "object")], "diff")
        yield ""
    yield "To delete all of this, push:"
    yield ""
    yield from fenced([command(sorted({each.digest for each in review.refused.values()}))], "sh")
