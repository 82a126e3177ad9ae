"""Which file group holds a record: by its bucket, or by looking it up."""
