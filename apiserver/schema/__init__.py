"""Schemas, patches and field ownership: pure functions on decoded JSON. Standard library, orjson and re2 only.

Doors: `structural.compile_schema` (prune, default, validate), `rules.check_structural` (is this a CRD's schema?),
`ownership.apply` and `ownership.record_update` (managed fields), `patches` (merge patch, JSON patch).
"""
