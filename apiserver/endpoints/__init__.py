"""HTTP: request paths, verbs, watch, discovery, OpenAPI, tables, and the one exception→Status table."""
