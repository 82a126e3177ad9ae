"""Orphan files: data files that no instant claims, put into quarantine by plans."""
