"""Which of several versions of a record is read: winners, partial updates, custom mergers."""
