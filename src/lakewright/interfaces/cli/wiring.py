"""Where the command line chooses its parts."""

from lakewright.api.opening import open_table

__all__ = ["open_table"]
