"""What a built-in kind is: one entry for each (entry, catalogue), and the kinds as they are served (served)."""
