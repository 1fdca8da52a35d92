"""Signatures of forges, as their documents have them, and what is nearly one."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

import pytest

from apiserver.auth.deliveries import Delivery

SECRET = "It's a Secret to Everybody"
BODY = b"Hello, World!"
# What GitHub's documentation gives for this secret and this body.
PUBLISHED = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
KEY = b"0123456789abcdef0123456789abcdef"
STANDARD = f"whsec_{base64.b64encode(KEY).decode()}"

Headers = dict[str, str]


def fits(headers: Headers, body: bytes = BODY, secret: str = SECRET) -> bool:
    delivery = Delivery([(name.lower().encode(), value.encode()) for name, value in headers.items()], secret)
    for part in (body[:5], body[5:]):
        delivery.take(part)
    return delivery.is_signed and delivery.fits()


def standard(body: bytes = BODY, key: bytes = KEY) -> Headers:
    text = base64.b64encode(hmac.digest(key, b"msg_1.1700000000." + body, "sha256")).decode()
    return {"webhook-id": "msg_1", "webhook-timestamp": "1700000000", "webhook-signature": f"v1,{text}"}


FORGES: dict[str, Headers] = {
    "github": {"X-Hub-Signature": "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59",
               "X-Hub-Signature-256": f"sha256={PUBLISHED}"},
    "bitbucket": {"X-Hub-Signature": f"sha256={PUBLISHED}"},
    "gitea": {"X-Gitea-Signature": PUBLISHED},
    "forgejo": {"X-Forgejo-Signature": PUBLISHED},
    "gitlab": {"X-Gitlab-Token": SECRET},
}  # fmt: skip


@pytest.mark.parametrize("forge", FORGES)
def test_each_forges_own_signature_fits(forge: str) -> None:
    assert fits(FORGES[forge])
    assert not fits(FORGES[forge], secret="another secret of some length")
    if forge != "gitlab":
        assert not fits(FORGES[forge], b"Hello, World?")


def test_a_signing_token_is_of_id_time_and_body() -> None:
    assert fits(standard(), secret=STANDARD)
    assert not fits(standard(b"other"), secret=STANDARD)
    for name in ("webhook-id", "webhook-timestamp"):
        assert not fits({**standard(), name: "other"}, secret=STANDARD)
        assert not fits({key: value for key, value in standard().items() if key != name}, secret=STANDARD)
    assert not fits(standard(key=STANDARD.encode()), secret=STANDARD), "the key is what stands behind whsec_"
    assert fits(standard(key=SECRET.encode())), "and of a secret that has no such beginning all of it"


def test_of_several_signatures_one_has_to_fit() -> None:
    signatures = f"v1,AAAA {standard()['webhook-signature']} v2,xx"
    assert fits({**standard(), "webhook-signature": signatures}, secret=STANDARD)
    assert not fits({**standard(), "webhook-signature": "v1,AAAA " * 8 + signatures}, secret=STANDARD), (
        "not of any number"
    )
    assert fits({"X-Gitea-Signature": "0" * 64, "X-Hub-Signature-256": f"sha256={PUBLISHED}"})


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Hub-Signature-256": PUBLISHED},
        {"X-Hub-Signature-256": ""},
        {"X-Hub-Signature-256": "sha256="},
        {"X-Hub-Signature-256": f"sha256={PUBLISHED[:-1]}"},
        {"X-Hub-Signature-256": f"sha256={PUBLISHED}0"},
        {"X-Hub-Signature": "sha1=" + hmac.new(SECRET.encode(), BODY, hashlib.sha1).hexdigest()},
        {"X-Gitea-Signature": ""},
        {"X-Gitlab-Token": ""},
        {"X-Gitlab-Token": SECRET[:-1]},
        {"X-Gitlab-Token": PUBLISHED},
        {"webhook-signature": "v1,", "webhook-id": "", "webhook-timestamp": ""},
        {"Authorization": f"Bearer {SECRET}"},
    ],
)
def test_what_is_nearly_a_signature_is_none(headers: Headers) -> None:
    assert not fits(headers)


def test_a_signature_in_capitals_is_the_same() -> None:
    assert fits({"X-Hub-Signature-256": f"sha256={PUBLISHED.upper()}"})


def test_comparisons_take_the_same_time_whatever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of them ends at the first difference: each goes through the function that is made for that."""
    compared: list[tuple[bytes, bytes]] = []
    real: Callable[[bytes, bytes], bool] = hmac.compare_digest

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    headers = {**FORGES["gitea"], **FORGES["gitlab"], **FORGES["github"], **standard()}
    assert fits(headers)
    assert len(compared) == 4, "none is left out once another fits"
    assert not any(SECRET.encode() in pair for pair in compared), "nothing tells how long the secret is"
