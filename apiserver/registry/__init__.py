"""What kinds a workspace serves and how their objects are read and written: strategies over the store.

Doors: `kinds` (what a kind is, and tables of them), `catalog` (which a workspace has), `strategy` (an object on its way
into the store), `objects` and `codec` (objects in the store), `tables`, `discovery` and `openapi` (kinds and objects as
clients want them described). `behaviours/` and `printers/` hold what is particular to a kind, `facts/` the data.
"""
