"""Names and shapes shared by everyone: keys, kinds, workspace paths, selectors, errors. Standard library only."""
