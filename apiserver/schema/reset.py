"""The fields that an endpoint does not let one set: kept at their live value, and owned by nobody through it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apiserver.schema import fieldset
from apiserver.schema.fieldset import MEMBER, Fields

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reset:
    """Either the top-level fields in `fields` are reset, or (`keep`) all others are."""

    fields: frozenset[str]
    keep: bool = False

    @staticmethod
    def of(fields: tuple[str, ...], subresource: str) -> Reset:
        """Of what a request says; /status resets everything but status unless told otherwise."""
        if subresource == "status" and not fields:
            return Reset(frozenset({"status"}), keep=True)
        return Reset(frozenset(fields))

    def resets(self, field: str) -> bool:
        return (field in self.fields) != self.keep

    def filter(self, fields: Fields) -> Fields:
        """A set without the fields that are reset."""
        if self.keep:
            return {k: v for k, v in fields.items() if not self.resets(k[2:])}
        return fieldset.without(fields, {f"f:{name}": MEMBER for name in self.fields}) if self.fields else fields

    def restore(self, obj: Json, live: Json) -> Json:
        """`obj` with the reset fields as they are in `live`. What names the object stays."""
        naming = ("apiVersion", "kind") if live else ("apiVersion", "kind", "metadata")
        names = [k for k in {**obj, **live} if self.resets(k) and k not in naming]
        if not names:
            return obj
        out = {k: v for k, v in obj.items() if k not in names}
        return {**out, **{k: live[k] for k in names if k in live}}
