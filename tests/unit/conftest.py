"""Unit tests are quick: what they may do is counted."""

from quick_units import begin_to_count, pytest_runtest_call, pytest_runtest_setup

__all__ = ["pytest_runtest_call", "pytest_runtest_setup"]

begin_to_count()
