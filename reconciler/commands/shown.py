"""The certificate that `up` was given to serve with: whether it fits, what becomes of it, what clients then trust.

Called by `up` and certificates.py. API workers follow the files by the same code (apiserver/openssl); this process
alone says what it comes to, so that it is said once.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from apiserver.auth.keys import Keys, Pair
from apiserver.auth.pki_serving import ServingFiles, as_pem
from apiserver.openssl import ServerTLS
from apiserver.registry.outbound import trusting
from apiserver.settings import Serving
from reconciler.commands.failure import USAGE, Failure

_BESIDE = "ca.crt"
"""Where cert-manager and others put the CA, beside certificate and key."""
_HERE = ("localhost", "127.0.0.1", "::1")
_ROUNDS = 10
"""More than a handshake takes."""


def shown(serving: Serving, keys: Keys, file: Path) -> ShownCertificate:
    """Of the options. Raises Failure."""
    certificate, key = serving.tls_cert_file, serving.tls_private_key_file
    if certificate is None or key is None:
        given, missing = ("cert", "private-key") if certificate else ("private-key", "cert")
        raise Failure(f"--tls-{given}-file is given without --tls-{missing}-file", "give both, or none", USAGE)
    try:
        return ShownCertificate(Pair(certificate, key), keys, file)
    except ValueError as error:
        raise Failure(f"--tls-cert-file: {error}", "mend the files, or start without them") from error


class ShownCertificate:
    """`file`: where its clients find what vouches for it, if that is no CA that they trust anyway."""

    def __init__(self, files: Pair, keys: Keys, file: Path) -> None:
        """Raises ValueError where certificate and key do not fit."""
        self.file = file
        self._keys = keys
        self._tls = ServerTLS(keys, given=files)
        if self._files.pair is None:
            raise ValueError(self._files.problem)
        self._seen, self._told, self._over = "", "", False

    def look(self) -> tuple[bool, list[str]]:
        """Whether another certificate counts from now on, and what there is to say."""
        files = self._files
        if files.look():
            self._seen, self._told, self._over = "", "", False
            assert files.pair is not None
            ends = f"{files.pair.ends:%Y-%m-%d}"
            return True, [f"{self._path} was read again: its certificate counts to {ends}"]
        return False, [*self._problem(), *self._end()]

    def trusted(self, host: str) -> tuple[bytes, str]:
        """Certificates (PEM) that vouch for the server at `host`; b"": whatever its machine trusts anyway. And what
        there is to say of that."""
        if self._tls.is_own(host):
            told = f"{self._path} does not name {host}: clients there are shown the server's own certificate"
            return self._keys.ca.read_bytes(), "" if host in _HERE else told
        for known in (*self._roots(), b""):
            if self._vouches(known, host):
                return known, ""
        assert self._files.pair is not None
        last = as_pem(self._files.pair.chain[-1])
        told = (
            f"neither {self._path} nor this machine knows who signed it, so the kubeconfig trusts what stands last in "
            f"that file, until that is another: put the CA's certificate there, or beside it as {_BESIDE}"
        )
        return last, told

    @property
    def _files(self) -> ServingFiles[object]:
        assert self._tls.given is not None
        return self._tls.given  # type: ignore[return-value]

    @property
    def _path(self) -> Path:
        return self._files.files.certificate

    def _problem(self) -> Iterator[str]:
        """Said at the second look that finds it: files are written one after the other."""
        before, self._seen = self._seen, self._files.problem
        if self._seen and self._seen == before and self._seen != self._told:
            self._told = self._seen
            yield f"{self._seen}; the certificate that was read before counts on"

    def _end(self) -> Iterator[str]:
        pair = self._files.pair
        if pair is not None and pair.ends <= datetime.now(UTC) and not self._over:
            self._over = True
            yield f"the certificate in {self._path} has ended: clients refuse it"

    def _roots(self) -> Iterator[bytes]:
        assert self._files.pair is not None
        if self._files.pair.roots:
            yield as_pem(*self._files.pair.roots)
        with suppress(OSError):
            yield self._path.with_name(_BESIDE).read_bytes()

    def _vouches(self, known: bytes, host: str) -> bool:
        """Whether a client that knows these certificates (b"": those of the system) lets the server be `host`."""
        try:
            context = trusting(known)
        except ValueError:
            return False
        there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
        talk = context.wrap_bio(back, there, server_hostname=host)
        server: Any = self._tls.at(host).wrap_bio(there, back)
        for _ in range(_ROUNDS):
            try:
                talk.do_handshake()
            except ssl.SSLWantReadError:
                with suppress(ssl.SSLError):
                    server.do_handshake()
            except ssl.SSLError:
                return False
            else:
                return True
        return False
