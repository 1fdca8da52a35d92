"""When credentials end, as tokens and certificates say, and what is told of it."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tokens import ACCOUNT, kubeconfig, raw, token

from apiserver.auth.pki import ensure_keys
from apiserver.auth.pki_validity import validity
from reconciler.syncing import kubeconfig as reading
from reconciler.syncing.lifetime import LARGEST, Lifetime, TargetAccount, end_told, lifetime, of_token, told

DAY = 86400.0
YEAR = Lifetime("token", 0.0, 365 * DAY, TargetAccount("treeplane-system", "treeplane"))
HOUR = Lifetime("token", 0.0, 3600.0, TargetAccount("treeplane-system", "treeplane"))


def test_a_token_says_when_it_ends_and_whose_it_is() -> None:
    found = of_token(token(100, 4000))
    assert found == Lifetime("token", 100.0, 4000.0, TargetAccount("treeplane-system", "treeplane"))


@pytest.mark.parametrize(
    "text",
    [
        "admin-token",
        "a.b.c",
        raw([]),
        raw({"exp": 10}),
        raw({"iat": 0, "exp": "soon"}),
        raw({"iat": 0, "exp": True}),
        raw({"iat": 10, "exp": 10}),
        raw({"iat": 0, "exp": 1e300}),
        raw({"iat": 0, "exp": float("inf")}),
        token(0, 10, more="x" * LARGEST),
    ],
)
def test_what_says_no_end_has_none(text: str) -> None:
    assert of_token(text) is None


@pytest.mark.parametrize(
    "sub", ["admin", "system:serviceaccount:a/../b:c", "system:serviceaccount:a:b?x=y", f"{ACCOUNT}\n", 7]
)
def test_an_account_is_a_name_and_nothing_that_leads_elsewhere(sub: Any) -> None:
    found = of_token(token(0, 10, sub))
    assert found is not None
    assert found.account is None


@given(st.text())
def test_no_text_is_more_than_no_token(text: str) -> None:
    of_token(text)
    of_token(f"a.{base64.urlsafe_b64encode(text.encode('utf-8', 'replace')).decode()}.b")


def test_a_client_certificate_counts_and_the_later_end_where_there_are_both(tmp_path: Path) -> None:
    keys = ensure_keys(tmp_path / "keys")
    data = {
        "client-certificate-data": base64.b64encode(keys.admin.certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(keys.admin.key.read_bytes()).decode(),
    }
    ends = validity(keys.admin.certificate.read_bytes()).ends
    found = lifetime(reading.read(kubeconfig(**data)))
    assert found is not None
    assert (found.what, found.ends, found.account) == ("client certificate", ends, None)
    both = lifetime(reading.read(kubeconfig(**data, token=token(0, ends + 100))))
    assert both is not None
    assert (both.what, both.ends) == ("token", ends + 100)
    assert lifetime(reading.read(kubeconfig(**data, token=token(0, 100)))) == found
    assert lifetime(reading.read(kubeconfig(**data, token="opaque"))) is None


def test_it_is_told_a_week_before_or_a_third_of_a_shorter_life() -> None:
    assert YEAR.warns == 358 * DAY
    assert HOUR.warns == 2400.0
    assert YEAR.renews(0.0) == pytest.approx(292 * DAY)
    assert YEAR.renews(1.0) == pytest.approx(273.75 * DAY)


def test_what_a_condition_tells() -> None:
    fine = told(YEAR, 10 * DAY, YEAR.renews(0), "", "")
    assert (fine["status"], fine["reason"]) == ("True", "CredentialsValid")
    assert fine["message"] == "the token ends at 1971-01-01T00:00:00Z; it is renewed after 1970-10-20T00:00:00Z"
    early = told(YEAR, 300 * DAY, 0.0, "RenewalFailed", "timed out")
    assert (early["status"], early["message"]) == ("True", "the token ends at 1971-01-01T00:00:00Z; timed out")
    late = told(YEAR, 358 * DAY, 0.0, "RenewalFailed", "timed out")
    assert (late["status"], late["reason"]) == ("False", "RenewalFailed")
    over = told(YEAR, 365 * DAY, 0.0, "", "")
    assert (over["status"], over["reason"]) == ("False", "CredentialsEnded")
    assert {end_told(each["message"]) for each in (fine, early, late, over)} == {"1971-01-01T00:00:00Z"}
    assert end_told("no word of it") == ""
