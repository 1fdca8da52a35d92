"""What `treeplane validate` says of bad repositories, word for word.

Each file in errors/ is a repository and the errors that it gives. Between the lines `-- <path> --` stand the files'
contents; `-- <path> -> <target> --` is a symbolic link, `-- <path> (bytes) --` has Python's escapes, and the last part
`-- errors --` is what is printed. `pytest tests/golden --update-golden` writes that part anew: read the difference.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest
from support.fleetrepo import TREEPLANE_YAML

from reconciler.commands.validate import validate_path

CASES = sorted((Path(__file__).parent / "errors").glob("*.txt"))
_HEADER = re.compile(r"^-- (?P<path>\S+?)(?: -> (?P<target>\S+))?(?P<bytes> \(bytes\))? --$")


class Part(NamedTuple):
    path: str
    target: str
    escaped: bool
    text: str


def parts(text: str) -> list[Part]:
    out: list[Part] = []
    for line in text.splitlines(keepends=True):
        header = _HEADER.match(line.rstrip("\n"))
        if header is not None:
            out.append(Part(header["path"], header["target"] or "", bool(header["bytes"]), ""))
        elif out:
            out[-1] = out[-1]._replace(text=out[-1].text + line)
    return out


def write(directory: Path, part: Part) -> None:
    file = directory / part.path
    file.parent.mkdir(parents=True, exist_ok=True)
    if part.target:
        file.symlink_to(part.target)
    elif part.escaped:
        file.write_bytes(part.text.rstrip("\n").encode().decode("unicode_escape").encode("latin-1"))
    else:
        file.write_text(part.text)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_errors(case: Path, tmp_path: Path, update_golden: bool) -> None:
    given = case.read_text()
    *files, expected = parts(given)
    assert expected.path == "errors", f"{case.name} does not end with the part errors"
    fleet = tmp_path / "fleet"
    if all(part.path != "treeplane.yaml" for part in files):
        write(fleet, Part("treeplane.yaml", "", False, TREEPLANE_YAML))
    for part in files:
        write(fleet, part)
    said = validate_path(fleet).render("text")
    if update_golden:
        case.write_text(given.rpartition("-- errors --\n")[0] + "-- errors --\n" + said)
    else:
        assert said == expected.text, "pytest tests/golden --update-golden writes the errors anew"


def test_there_are_cases() -> None:
    assert len(CASES) >= 10
