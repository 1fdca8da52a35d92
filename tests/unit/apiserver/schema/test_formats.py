from __future__ import annotations

import pytest

from apiserver.schema import formats

GOOD_AND_BAD = [
    ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
    ("uri", "https://example.com/a", "not a uri"),
    ("email", "a@example.com", "nobody"),
    ("hostname", "web-1.example.com", "-web"),
    ("ipv4", "10.0.0.1", "fe80::1"),
    ("ipv6", "fe80::1", "10.0.0.1"),
    ("cidr", "10.0.0.1/24", "10.0.0.1"),
    ("mac", "00:1a:2b:3c:4d:5e", "00:1a:zz"),
    ("uuid", "A987FBC9-4BED-3078-CF07-9141BA07C9F3", "a987fbc9"),
    ("uuid3", "a987fbc9-4bed-3078-cf07-9141ba07c9f3", "a987fbc9-4bed-4078-8f07-9141ba07c9f3"),
    ("uuid4", "57b73598-8764-4ad0-a76a-679bb6640eb1", "57b73598-8764-3ad0-a76a-679bb6640eb1"),
    ("uuid5", "987fbc97-4bed-5078-af07-9141ba07c9f3", "987fbc97-4bed-5078-0f07-9141ba07c9f3"),
    ("isbn", "978-0321751041", "978-0321751042"),
    ("isbn10", "0321751043", "0321751044"),
    ("isbn13", "978-0321751041", "0321751043"),
    ("creditcard", "4111 1111 1111 1111", "4111 1111 1111 1112"),
    ("ssn", "111-11-1111", "1111"),
    ("hexcolor", "#FFFFFF", "#GG"),
    ("rgbcolor", "rgb(255, 0, 7)", "rgb(256,0,0)"),
    ("byte", "aGVsbG8=", "a"),
    ("date", "2006-01-02", "2006-13-02"),
    ("duration", "1h30m", "soon"),
    ("duration", "22 ns", "22 parsecs"),
    ("date-time", "2014-12-15T19:30:20.000Z", "2014-12-15"),
    ("k8s-short-name", "web-1", "Web"),
    ("k8s-long-name", "web.example", "web..example"),
]


@pytest.mark.parametrize(("name", "good", "bad"), GOOD_AND_BAD)
def test_format(name: str, good: str, bad: str) -> None:
    check = formats.checker(name)
    assert check is not None
    assert check(good)
    assert not check(bad)


def test_unknown_formats_are_not_checked() -> None:
    assert formats.checker("quantity") is None
