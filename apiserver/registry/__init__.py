"""What kinds a workspace serves and how their objects are read and written: strategies over the store.

Doors: `kinds` (which kinds there are, and tables of them), `builtins.catalogue` (what the program knows of built-in
ones), `catalog` (which a workspace has), `strategy` (an object on its way into the store), `objects` and `codec`
(objects in the store), `tables`, `discovery` and `openapi` (kinds and objects as clients want them described).
`builtins/` has an entry for each built-in kind, made of rules in `behaviours/`, columns in `printers/` and the data in
`facts/`.
"""
