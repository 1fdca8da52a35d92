"""Files that SOPS encrypted for age recipients: what is in them, and how they are written."""
