"""Locks: one writer at a time takes an instant or publishes."""
