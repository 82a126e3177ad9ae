"""The checks behind ``fsck``, one module for each part of a table."""
