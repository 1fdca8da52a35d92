"""The string formats that Kubernetes checks in CRDs. Others are ignored, as there.

`checker(name)` is called once per schema node; hyphens in a format's name do not count.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from email.utils import parseaddr
from urllib.parse import urlsplit

Checker = Callable[[str], bool]

_CARD = re.compile(
    r"(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11})"
)
_LABEL = r"[^\W_](?:[\w-]{0,61}[^\W_])?"
_HOSTNAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\.?")
_MAC = re.compile(r"(?:[0-9a-fA-F]{2}([:-]))(?:[0-9a-fA-F]{2}\1)*[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.)+[0-9a-fA-F]{4}")
_DATETIME = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})[Tt ](?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-][0-2]\d:?[0-5]\d)?"
)
_GO_DURATION = re.compile(r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+|[+-]?0")
_WORD_DURATION = re.compile(
    r"\s*[+-]?\d+(?:\.\d+)?\s*(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?"
    r"|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)\s*"
)
_ADDRESS = 1_000
"""Characters of a mail address with the name before it; RFC 5321 gives an address 254."""
_OCTET = r"(?:\d{1,2}|1\d\d|2[0-4]\d|25[0-5])"
_SHORT = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_LONG = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


def _full(pattern: str, flags: int = 0) -> Checker:
    compiled = re.compile(pattern, flags)
    return lambda text: compiled.fullmatch(text) is not None


def _uuid(version: str, variant: str) -> Checker:
    return _full(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}-?{variant}-?[0-9a-f]{{12}}", re.IGNORECASE | re.ASCII)


def _ip(version: int) -> Checker:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return check


def _cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text and text.rpartition("/")[2].isdigit()


def _date(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _datetime(text: str) -> bool:
    found = _DATETIME.fullmatch(text)
    return found is not None and _date("-".join(found.groups()))


def _duration(text: str) -> bool:
    return _GO_DURATION.fullmatch(text) is not None or _WORD_DURATION.fullmatch(text) is not None


def _byte(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _uri(text: str) -> bool:
    # Go's ParseRequestURI: an absolute URI or an absolute path, no fragment.
    if not text or any(c.isspace() or ord(c) < 0x20 for c in text):
        return False
    try:
        return text.startswith("/") or bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _email(text: str) -> bool:
    if len(text) > _ADDRESS:  # the library's reader takes the square of that
        return False
    name, at, host = parseaddr(text)[1].rpartition("@")
    return bool(name and at and host) and not any(c.isspace() for c in name + host)


def _digits(text: str) -> str:
    return re.sub(r"[\s-]", "", text)


def _isbn10(text: str) -> bool:
    digits = _digits(text)
    if re.fullmatch(r"[0-9]{9}[0-9X]", digits) is None:
        return False
    return sum((i + 1) * (10 if d == "X" else int(d)) for i, d in enumerate(digits)) % 11 == 0


def _isbn13(text: str) -> bool:
    digits = _digits(text)
    if re.fullmatch(r"[0-9]{13}", digits) is None:
        return False
    return sum((3 if i % 2 else 1) * int(d) for i, d in enumerate(digits)) % 10 == 0


def _credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if _CARD.fullmatch(digits) is None:
        return False
    doubled = (int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(digits)))
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


_FORMATS: dict[str, Checker] = {
    "bsonobjectid": _full(r"[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _email,
    "hostname": lambda text: len(text) <= 255 and _HOSTNAME.fullmatch(text) is not None,
    "ipv4": _ip(4),
    "ipv6": _ip(6),
    "cidr": _cidr,
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "uuid": _uuid("[0-9a-f]{4}", "[0-9a-f]{4}"),
    "uuid3": _uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "isbn": lambda text: _isbn10(text) or _isbn13(text),
    "isbn10": _isbn10,
    "isbn13": _isbn13,
    "creditcard": _credit_card,
    "ssn": _full(r"\d{3}[- ]?\d{2}[- ]?\d{4}", re.ASCII),
    "hexcolor": _full(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _full(rf"rgb\(\s*{_OCTET}\s*(?:,\s*{_OCTET}\s*){{2}}\)"),
    "byte": _byte,
    "password": lambda _: True,
    "date": _date,
    "duration": _duration,
    "datetime": _datetime,
    "k8sshortname": lambda text: len(text) <= 63 and _SHORT.fullmatch(text) is not None,
    "k8slongname": lambda text: len(text) <= 253 and _LONG.fullmatch(text) is not None,
}


def checker(name: str) -> Checker | None:
    """The check of a format, None for one that Kubernetes does not know."""
    return _FORMATS.get(name.replace("-", ""))


is_datetime: Checker = _datetime
is_base64: Checker = _byte
