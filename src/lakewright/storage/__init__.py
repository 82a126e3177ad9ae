"""Bytes by path: one port, and a storage behind it for each kind of place."""
