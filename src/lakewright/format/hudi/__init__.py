"""The Hudi table format, versions 6, 8 and 9."""
