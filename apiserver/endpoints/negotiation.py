"""Which form an answer takes: the Accept header against what there is. Pure.

JSON is always acceptable: a client that names protobuf alone gets JSON too and decodes by the answer's Content-Type.
Tables and partial metadata are given where the client asks for them first and they exist; else the next form in its
list.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from apiserver.model.errors import StatusError, bad_request

OBJECT, TABLE, PARTIAL = "object", "table", "partial"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_JSON = frozenset({"application/json", "application/*", "*/*", _PROTOBUF})
_YAML = "application/yaml"


class Media(NamedTuple):
    """What to send. `version`: of meta.k8s.io, for tables and partial metadata. `bare`: the client named protobuf first
    and compares list items with objects that carry no apiVersion and kind."""

    form: str
    version: str = "v1"
    yaml: bool = False
    bare: bool = False


PLAIN = Media(OBJECT)
_LONGEST = 1024
"""Characters of an Accept header: what is made of it is remembered."""


class Choice(NamedTuple):
    """One entry of an Accept header, without its q parameter; in the client's order of preference."""

    media_type: str
    parameters: dict[str, str]


@lru_cache(256)
def choices(accept: str) -> tuple[Choice, ...]:
    """Raises StatusError 400 for a header that is longer than any program needs."""
    if len(accept) > _LONGEST:
        raise bad_request(f"the Accept header is longer than {_LONGEST} characters")
    found: list[tuple[float, int, Choice]] = []
    for i, part in enumerate(accept.split(",")):
        media_type, *rest = (p.strip() for p in part.split(";"))
        parameters = {k.strip(): v.strip() for k, _, v in (p.partition("=") for p in rest)}
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        if media_type and quality > 0:
            found.append((-quality, i, Choice(media_type.lower(), parameters)))
    return tuple(choice for _, _, choice in sorted(found, key=lambda f: f[:2]))


@lru_cache(1024)
def negotiate(accept: str, many: bool, tables: bool = True) -> Media:
    """`many`: the answer is a list. `tables`: the resource has a table. Raises StatusError 406."""
    if accept in ("", "*/*", "application/json"):
        return PLAIN
    first, known = "", False
    for media_type, parameters in choices(accept):
        first = first or media_type
        yaml = media_type == _YAML
        if not yaml and media_type not in _JSON:
            continue
        known = True
        bare = first == _PROTOBUF
        shape = parameters.get("as", "")
        if not shape:
            return Media(OBJECT, yaml=yaml, bare=bare)
        version = parameters.get("v", "")
        if parameters.get("g") != "meta.k8s.io" or version not in ("v1", "v1beta1"):
            continue
        if shape == "Table" and tables:
            return Media(TABLE, version, yaml)
        if shape == ("PartialObjectMetadataList" if many else "PartialObjectMetadata"):
            return Media(PARTIAL, version, yaml, bare)
    why = "only the following media types are accepted" if known else "406: Not Acceptable\n\nAvailable representations"
    raise StatusError(406, "NotAcceptable", f"{why}: application/json, application/yaml")
