"""Kubernetes' rules for names, labels and annotation keys, with its messages.

Each check gives the reasons why a text will not do, [] if it will. Which rule a kind's names follow is said by the kind
(served.py).
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Callable

Check = Callable[[str], list[str]]

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_NAME_PART})?"
_DATA_KEY = r"[-._a-zA-Z0-9]+"

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM = 5
_GENERATED = 63


def _matcher(pattern: str, limit: int, text: str) -> Check:
    compiled = re.compile(pattern, re.ASCII)
    message = f"{text}, regex used for validation is '{pattern}')"

    def check(value: str) -> list[str]:
        found = [_too_long(limit)] if len(value) > limit else []
        return found if compiled.fullmatch(value) else [*found, message]

    return check


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


_dns_label: Check = _matcher(
    _LABEL,
    63,
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc'",
)
dns_subdomain: Check = _matcher(
    _SUBDOMAIN,
    253,
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com'",
)


def dns_label(name: str) -> list[str]:
    """One segment of a DNS name."""
    found = _dns_label(name)
    if found and len(name) <= 63 and not dns_subdomain(name):
        return ["must not contain dots"]
    return found


dns_1035: Check = _matcher(
    _DNS1035,
    63,
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123'",
)
label_value: Check = _matcher(
    _LABEL_VALUE,
    63,
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345'",
)
_name_part: Check = _matcher(
    _NAME_PART,
    63,
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc'",
)
_data_key: Check = _matcher(
    _DATA_KEY,
    253,
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name'",
)


def data_key(key: str) -> list[str]:
    """Of ConfigMaps and Secrets."""
    if key == ".":
        return ["must not be '.'"]
    if key.startswith(".."):
        return ["must not be '..'" if key == ".." else "must not start with '..'"]
    return _data_key(key)


def qualified_name(key: str) -> list[str]:
    """Of labels, annotations and finalizers: `name` or `example.com/name`."""
    prefix, slash, name = key.rpartition("/")
    if slash and "/" in prefix:
        return [
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            f"an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_NAME_PART}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    found: list[str] = []
    if slash:
        found = ["prefix part must be non-empty"] if not prefix else [f"prefix part {m}" for m in dns_subdomain(prefix)]
    if not name:
        found.append("name part must be non-empty")
    return [*found, *(m if m.startswith("name part") else f"name part {m}" for m in _name_part(name))]


def path_segment(name: str) -> list[str]:
    """Names that only have to fit into a URL, as RBAC's do."""
    if name in (".", ".."):
        return [f"may not be '{name}'"]
    found = [f"may not contain '{c}'" for c in ("/", "%", "\0") if c in name]
    return [*found, _too_long(253)] if len(name.encode()) > 253 else found  # kube-apiserver takes what etcd does


def cron_job(name: str) -> list[str]:
    """Leaves room for the suffix of its Jobs."""
    return dns_subdomain(name) + (["must be no more than 52 characters"] if len(name) > 52 else [])


def ip_address(name: str) -> list[str]:
    """Names that are addresses, written as Kubernetes writes them (RFC 5952)."""
    try:
        canonical = str(ipaddress.ip_address(name))
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if canonical == name else [f'must be in canonical form ("{canonical}")']


def generate(base: str) -> str:
    """A name from metadata.generateName: the base, cut so that all fits into 63, and five random characters."""
    suffix = "".join(secrets.choice(_ALPHABET) for _ in range(_RANDOM))
    return base[: _GENERATED - _RANDOM] + suffix
