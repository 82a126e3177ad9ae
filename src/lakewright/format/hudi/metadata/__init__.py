"""The bodies of timeline files: one module per action, values to bytes and back."""
