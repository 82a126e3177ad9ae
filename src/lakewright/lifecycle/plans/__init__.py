"""Plans as values, kept with the table: applied once, resumed after a crash, undone later."""
