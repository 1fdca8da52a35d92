"""What a recovery would come to: a fresh clone is loaded as a recovery does, recorded again, and held against it."""
