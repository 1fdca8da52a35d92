"""What others need in order to verify our ServiceAccount tokens: OpenID Connect's discovery document and the keys."""

from __future__ import annotations

import orjson

from apiserver.auth.accounts import Accounts
from apiserver.auth.jwt import ALGORITHM
from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.exchange import JSON, Exchange
from apiserver.endpoints.paths import JWKS, RequestPath, RequestRoute

_CACHED = [(b"cache-control", b"public, max-age=3600")]


async def issuer(exchange: Exchange, place: RequestPath, accounts: Accounts | None, url: str) -> None:
    """`url`: the server's, for clients. Raises NoSuchPath on a server that issues no tokens."""
    if accounts is None:
        raise NoSuchPath
    if place.route is RequestRoute.JWKS:
        keys = orjson.dumps({"keys": accounts.signer.public_keys()})
        await exchange.answer(200, keys, b"application/jwk-set+json", _CACHED)
        return
    document = {
        "issuer": accounts.issuer.name,
        "jwks_uri": f"{url}{JWKS}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
    await exchange.answer(200, orjson.dumps(document), JSON, _CACHED)
