"""One tree of settings: an option is one field, and all else follows from it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from support.fleetrepo import plain_fleet

from apiserver.options import options as options_of
from apiserver.settings import Common, ServerSettings, Serving
from reconciler.commands.options import groups
from reconciler.commands.settings import LogSettings, ReconcileSettings, Reconciling, Starting, UpSettings
from reconciler.commands.settingspage import page
from reconciler.repository.access import RemoteAccess

TOP = Path(__file__).parents[4]
DOCUMENT = TOP / "docs" / "settings.md"

FIELD = '    cups: int = option(7, told=Option("How many cups there are.", document="All the cups.", least=2))\n'
CHILD = "Path(settings.data_dir, '{}').write_text(repr(settings.cups))"
BEFORE = {
    Common: ("apiserver/settings.py", "    sync_writes: bool"),
    Serving: ("apiserver/settings.py", "    token_auth_file: Path"),
    Reconciling: ("reconciler/commands/settings.py", "    take_over: str"),
}


def test_the_document_is_made_of_the_settings() -> None:
    assert page(DOCUMENT.read_text()) == DOCUMENT.read_text(), "make settings"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The program, whose API worker and reconciler do nothing but write the new setting down."""
    for package in ("apiserver", "reconciler", "repo-layout"):
        shutil.copytree(TOP / package, tmp_path / package)
    main = tmp_path / "apiserver" / "serve.py"
    main.write_text(f"from pathlib import Path\ndef serve(settings, listener):\n    {CHILD.format('worker')}\n")
    main = tmp_path / "reconciler" / "commands" / "reconcile.py"
    main.write_text(
        "from pathlib import Path\nfrom reconciler.commands.settings import ReconcileSettings\n"
        "from reconciler.commands.told import heard\n"
        f"settings = ReconcileSettings.from_json(heard(0))\n{CHILD.format('reconciler')}\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    ("group", "children"), [(Common, {"worker", "reconciler"}), (Serving, {"worker"}), (Reconciling, {"reconciler"})]
)
def test_an_option_is_one_field(copy: Path, eventually: Callable[..., Any], group: type, children: set[str]) -> None:
    """The line of the field, and nothing else, makes the option, its key in a file, its line in the document, and its
    way to children."""
    file, before = copy / BEFORE[group][0], BEFORE[group][1]
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, FIELD + before, 1))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", *words], cwd=copy, capture_output=True, text=True, check=False)

    said = run("reconciler", "up", "--help").stdout
    assert "--cups INTEGER RANGE" in said
    assert "How many cups there are.  [default: 7; x>=2]" in " ".join(said.split()).replace(". [", ".  [")
    refused = run("reconciler", "up", "--cups=1")
    assert (refused.returncode, "1 is not in the range x>=2" in refused.stderr) == (2, True)
    config = copy / "config.yaml"
    config.write_text("apiVersion: treeplane.dev/v1alpha1\nkind: ServerConfiguration\ncups: 1\n")
    refused = run("reconciler", "up", "--config=config.yaml")
    assert (refused.returncode, "config.yaml:3: cups: 1 is not in the range x>=2" in refused.stderr) == (2, True)
    shutil.copy(DOCUMENT, copy / "settings.md")
    run("reconciler.commands.settingspage", "settings.md")
    new = set((copy / "settings.md").read_text().splitlines()) - set(DOCUMENT.read_text().splitlines())
    assert new == {"| `--cups` | 7 | All the cups. |"}

    plain_fleet(copy / "fleet")
    words = ["up", "fleet", "--data-dir=data", "--listen=127.0.0.1:0", "--workers=1", "--cups=9"]
    server = subprocess.Popen([sys.executable, "-m", "reconciler", *words], cwd=copy, stdout=subprocess.DEVNULL)
    try:
        for child in children:
            eventually(lambda file=copy / "data" / child: file.exists() and file.read_text() == "9", 60)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


def test_what_a_process_gets_is_its_groups_and_what_up_finds_out() -> None:
    assert list(groups(UpSettings).values()) == [Starting, Common, LogSettings, Serving, RemoteAccess, Reconciling]
    for process, mine in (
        (ServerSettings, (Common, Serving)),
        (ReconcileSettings, (Common, RemoteAccess, Reconciling)),
    ):
        names = [field.name for group in mine for field in fields(group)]
        assert [field.name for field, _, _ in options_of(process)] == names


def test_what_may_hold_a_credential_is_not_printed(tmp_path: Path) -> None:
    source = "https://me:hunter2@example.org/fleet.git"
    starting = Starting(repository=source)
    told = ReconcileSettings(tmp_path, tmp_path, source=source, url="u", local_url="u")
    assert "hunter2" not in repr(UpSettings(starting=starting, common=Common(tmp_path, tmp_path))) + repr(told)
    assert ReconcileSettings.from_json(told.to_json()).source == source


def test_what_a_parent_of_another_version_says_is_refused(tmp_path: Path) -> None:
    told = ReconcileSettings(tmp_path, tmp_path, source="s", url="u", local_url="u").to_json()
    with pytest.raises(ValueError, match="unknown settings: nope"):
        ReconcileSettings.from_json(told.replace("{", '{"nope": 1, ', 1))
