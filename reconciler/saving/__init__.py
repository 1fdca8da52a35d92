"""Backups: what a server has and its repository has not, in one encrypted file, and back."""
