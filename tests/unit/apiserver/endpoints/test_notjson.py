"""Bodies that are no JSON, in the words of kube-apiserver."""

from __future__ import annotations

import orjson
import pytest

from apiserver.endpoints import bodies, notjson
from apiserver.model.errors import StatusError

REASONS = {
    "a: b": "invalid character 'a' looking for beginning of value",
    '{"kind":': "unexpected end of JSON input",
    "": "unexpected end of JSON input",
    '{"kind":"Namespace" "x"}': "invalid character '\"' after object key:value pair",
    "{a:1}": "invalid character 'a' looking for beginning of object key string",
    '{"a"1}': "invalid character '1' after object key",
    "[1 2]": "invalid character '2' after array element",
    '{"a":tru}': "invalid character '}' in literal true (expecting 'e')",
    '{"a":nul': "unexpected end of JSON input",
    '{"a":1}x': "invalid character 'x' after top-level value",
    '{"a":"\x01"}': r"invalid character '\x01' in string literal",
    '{"a":1,}': "invalid character '}' looking for beginning of object key string",
    "[1, ]": "invalid character ']' looking for beginning of value",
    "'x'": r"invalid character '\'' looking for beginning of value",
    '{"a":-a}': "invalid character 'a' in numeric literal",
    r'{"a":"\x"}': "invalid character 'x' in string escape code",
}


@pytest.mark.parametrize(("text", "expected"), REASONS.items())
def test_reasons(text: str, expected: str) -> None:
    with pytest.raises(orjson.JSONDecodeError) as error:
        orjson.loads(text)
    assert notjson.reason(error.value) == expected


def test_a_manifest_in_yaml_sent_as_json() -> None:
    with pytest.raises(StatusError) as error:
        bodies.read_object(b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n", "", "Namespace")
    assert error.value.message == (
        "the object provided is unrecognized (must be of type Namespace): couldn't get version/kind; json parse error: "
        "invalid character 'a' looking for beginning of value "
        "(61706956657273696f6e3a2076310a6b696e643a20506f640a6d65746164 ...)"
    )


def test_what_is_shown_of_a_body() -> None:
    assert [notjson.shown(body) for body in (b"", b"[5]", b'{"a":')] == ["<empty>", "5b355d", '{"a":']
