"""Catalogs: tables by name; they return values and never touch an engine."""
