"""What a server needs before a process of it is started: settings that can be, certificates, an address, a source.

Called by `up` in this order, so that whatever is wrong is one sentence, and nothing has begun. What runs then is up's.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from apiserver.auth.deliveries import secret_file
from apiserver.auth.files import write_private
from apiserver.auth.keys import Keys, KeysError
from apiserver.auth.pki_clients import authorities_in
from apiserver.auth.tokens import TokenFile
from apiserver.launch import listen
from apiserver.model.hostedrepository import PLACE
from apiserver.options import values
from apiserver.settings import ServerSettings, Serving
from apiserver.storage.lmdb_looking import check_format
from apiserver.storage.lmdb_soundness import NewerStore
from reconciler.commands import addresses, forgeplaces, onefile
from reconciler.commands.certificates import Certificates
from reconciler.commands.failure import BUSY, Failure
from reconciler.commands.ports import PortHolder, holder
from reconciler.commands.remoteaccess import check_access
from reconciler.commands.settings import Address, Reconciling, UpSettings
from reconciler.commands.source import Source, check, resolve
from reconciler.forges.errors import NotSaid
from reconciler.repository.errors import RepositoryError
from reconciler.repository.gitversion import require_git
from reconciler.repository.source import is_git_dir
from reconciler.signatures.own import CommitKey

if TYPE_CHECKING:
    from reconciler.commands.externalca import ExternalAuthority

_GRACE_SECONDS = 5.0
"""That a worker may take beside its requests under way to notice that its parent has ended, and to end."""
_LOOK_SECONDS = 0.05


class PreparedServer(NamedTuple):
    """`new_keys`: there was no CA before."""

    server: ServerSettings
    source: Source
    certificates: Certificates
    listener: socket.socket
    new_keys: bool


def prepare(settings: UpSettings, left: Collection[int] = ()) -> PreparedServer:
    """In a data directory that nobody else uses. `left`: processes that an `up` before had, which may not have
    ended yet where that was killed. Raises Failure."""
    common = settings.common
    new_keys = not Keys(common.keys_dir).ca.exists()
    onefile.keep(ServerSettings(common.data_dir, common.keys_dir).plugin_file)
    address = settings.starting.listen
    listener = listening(address, left, settings.serving.shutdown_seconds + _GRACE_SECONDS)
    try:
        certificates = _certificates(settings)
        port = listener.getsockname()[1]
        server = ServerSettings(**values(common, settings.serving), host=address.host, port=port)
        urls = [server.url, server.local_url]
        repository = _remembered(settings)
        check_access(repository, settings.access)
        source = resolve(repository, common.data_dir, common.branch, urls, _commit_key(settings).sign, common.path)
        external = certificates.external.file if certificates.external is not None else None
        server = replace(server, git_dir=source.hosted, external_authority=external)
        return PreparedServer(server, source, certificates, listener, new_keys)
    except BaseException:
        listener.close()  # nobody accepts on it
        raise


def _check_git() -> None:
    try:
        require_git()
    except RepositoryError as error:
        raise Failure(str(error)) from error


def check_store(directory: Path) -> None:
    """Here, before an API worker or the reconciler touches anything: a newer Treeplane's is left as it is."""
    try:
        check_format(directory)
    except NewerStore as error:
        raise Failure(str(error)) from error


def check_files(settings: UpSettings) -> None:
    """What the settings name, and the program git. Raises Failure."""
    _check_git()
    _check_serving(settings.serving)
    _check_told(settings.reconciling)
    check(settings.starting.repository, settings.common.data_dir, settings.common.path)


def _check_serving(serving: Serving) -> None:
    """Each worker would end on a file that cannot be read."""
    readers: tuple[tuple[str, Path | None, Callable[[Path], object]], ...] = (
        ("--token-auth-file", serving.token_auth_file, TokenFile),
        ("--client-ca-file", serving.client_ca_file, authorities_in),
        ("--webhook-secret-file", serving.webhook_secret_file, lambda file: secret_file(file).read()),
    )
    for option, file, read in readers:
        try:
            if file is not None:
                read(file)
        except (OSError, ValueError) as error:
            raise Failure(f"{option}: {error}", "mend the file") from error


def _check_told(reconciling: Reconciling) -> None:
    """Who is told of commits has to be somebody."""
    try:
        forgeplaces.checked(reconciling)
    except NotSaid as error:
        raise Failure(error.text, error.hint, 2) from None


def _certificates(settings: UpSettings) -> Certificates:
    starting = settings.starting

    def names() -> list[str]:
        return addresses.names(starting.listen.host, settings.serving.external_url, starting.tls_sans)

    try:
        found = Certificates(
            settings.common.keys_dir, names, starting.certificate_seconds, copies=starting.serving_files
        )
    except KeysError as error:
        raise Failure(str(error)) from error
    if starting.external_ca_file:
        found.external = _external(starting.external_ca_file, settings.serving.external_url)
    if settings.serving.tls_cert_file or settings.serving.tls_private_key_file:
        from reconciler.commands.shown import shown  # noqa: PLC0415 - OpenSSL takes its time, and most have none

        found.shown = shown(settings.serving, found.keys, settings.common.data_dir / "serving-ca.crt")
    return found


def _external(said: str, url: str) -> ExternalAuthority:
    from reconciler.commands.externalca import ExternalAuthority  # noqa: PLC0415 - behind a proxy alone

    if not url:
        raise Failure("--external-ca-file says what clients check --external-url by", "give --external-url, too", 2)
    found = ExternalAuthority.of(said)
    try:
        found.trusted()
    except (OSError, ValueError) as error:
        raise Failure(f"--external-ca-file: {error}", "give certificates in PEM, or `system`", 2) from error
    return found


def _commit_key(settings: UpSettings) -> CommitKey:
    """Here, so that one that cannot be used is told before anything starts."""
    try:
        return CommitKey.open(settings.common.keys_dir)
    except KeysError as error:
        raise Failure(str(error)) from error


def listening(address: Address, left: Collection[int], seconds: float) -> socket.socket:
    """A socket that listens there. Raises Failure where somebody else does, or still one of `left` after so long."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return listen(address.host, address.port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise Failure(f"cannot listen on {_shown(address)}: {error.strerror or error}") from error
            by = holder(address.port)
            leaves = bool(left) and (by is None or by.pid in left)  # None: it may have ended just now
            if not leaves or time.monotonic() > deadline:
                raise _taken(address, by) from error
        time.sleep(_LOOK_SECONDS)


def _taken(address: Address, by: PortHolder | None) -> Failure:
    said = f"{_shown(address)} is taken by {by}" if by else f"{_shown(address)} is taken"
    return Failure(said, "stop it, or choose another address with --listen HOST:PORT", BUSY)


def _shown(address: Address) -> str:
    return f"{address.host}:{address.port}"


def _remembered(settings: UpSettings) -> str:
    """The repository; named once, it need not be named again."""
    file, text = settings.common.data_dir / "source", settings.starting.repository
    if text:
        if "://" not in text and Path(text).exists():
            text = str(Path(text).resolve())
        write_private(file, f"{text}\n".encode())
        return settings.starting.repository
    try:
        file.chmod(0o600)  # it may name a password
        return file.read_text().strip()
    except FileNotFoundError:
        hosted = settings.common.data_dir / PLACE  # out of a backup, which has no more of where it came from
        if is_git_dir(hosted):
            return str(hosted)
        raise Failure("no REPOSITORY given, and none was served from this data directory before",
                      "treeplane up REPOSITORY", 2) from None  # fmt: skip
