"""What a kind is: all that the program knows of each built-in kind, one entry for each (entry.py, catalogue.py)."""
