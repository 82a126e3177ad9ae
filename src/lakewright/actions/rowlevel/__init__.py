"""Changing rows by what they hold: update and merge, planned once for both engines."""
