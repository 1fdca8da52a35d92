"""With what a repository's URL is reached, where a command is told so: the --git-* options of `treeplane up`, for
commands that ask a repository once. They may stand in the environment, too: a proxy's URL may have a password.

Called by the command line, and by `up` before it begins. What is done with it is repository/access.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from apiserver.auth.pki_clients import authorities_in
from apiserver.model.redaction import redact
from apiserver.options import options
from reconciler.commands.again import LEFT_OUT
from reconciler.commands.failure import USAGE, Failure
from reconciler.commands.options import group_options, name_of
from reconciler.repository.access import NO_ACCESS, Reaching, RemoteAccess
from reconciler.repository.errors import RepositoryError
from reconciler.repository.source import is_url

_Command = TypeVar("_Command", bound=Callable[..., Any])
_FIELDS = [(each, told) for each, _, told in options(RemoteAccess)]


def access_options(command: _Command) -> _Command:
    """Gives a command these options, as its argument `access`."""

    @wraps(command)
    def run(*args: Any, **given: Any) -> Any:
        access = RemoteAccess(**{each.name: given.pop(each.name) for each, _ in _FIELDS})
        return command(*args, access=access, **given)

    return group_options(RemoteAccess)(run)  # type: ignore[return-value]


def check_access(repository: str, access: RemoteAccess) -> None:
    """With what a URL is reached has to fit it, and be nobody else's to read. Raises Failure."""
    try:
        if access.git_ca_file is not None:
            authorities_in(access.git_ca_file)
    except (OSError, ValueError) as error:
        raise Failure(f"--git-ca-file: {error}", "mend the file", USAGE) from error
    try:
        if is_url(repository):
            Reaching(repository, access).check()
    except RepositoryError as error:
        raise Failure(error.what, error.hint, USAGE) from error


def typed(access: RemoteAccess) -> str:
    """As they are typed for `treeplane up`, with a blank before each; three dots stand for what may be secret."""
    found = [(name_of(each, told), getattr(access, each.name)) for each, told in _FIELDS]
    default = [getattr(NO_ACCESS, each.name) for each, _ in _FIELDS]
    said = [(name, str(value)) for (name, value), usual in zip(found, default, strict=True) if value != usual]
    return "".join(f" {name} {shlex.quote(value) if redact(value) == value else LEFT_OUT}" for name, value in said)
