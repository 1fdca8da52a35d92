"""Quantities as kube-apiserver stores them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.registry.quantities import canonical, parse

CANONICAL = {
    "0.1": "100m",
    "0": "0",
    "1000": "1k",
    "1024": "1024",
    "1024Mi": "1Gi",
    "1.5Gi": "1536Mi",
    "0.5Gi": "512Mi",
    "1000Ki": "1000Ki",
    "0.25Ki": "256",
    "1.1Ki": "1126400m",
    "-1500m": "-1500m",
    "2000m": "2",
    "12e5": "1200e3",
    "1e4": "10e3",
    "5e-3": "5e-3",
    "100e-2": "1",
    "0.000000001": "1n",
    "12300E": "12300E",
    "0.1n": "1n",
}


@pytest.mark.parametrize(("given_as", "stored"), CANONICAL.items())
def test_canonical_forms(given_as: str, stored: str) -> None:
    assert canonical(given_as) == stored


def test_amounts_of_resources_keep_thousandths() -> None:
    assert canonical("0.0000001", milli=True) == "1m"
    assert canonical("0.001Ki", milli=True) == "1024m"


@pytest.mark.parametrize("text", ["", "1.5Gib", "abc", "1 Gi", "--1"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        canonical(text)


@given(st.integers(0, 10**12), st.sampled_from(["n", "u", "m", "", "k", "M", "Ki", "Mi", "e3", "e-3"]))
def test_the_amount_and_its_form_stay(number: int, suffix: str) -> None:
    stored = canonical(f"{number}{suffix}")
    assert parse(stored) == parse(f"{number}{suffix}")
    assert canonical(stored) == stored
