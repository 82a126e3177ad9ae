"""Lakewright: the Python home of lake tables."""
