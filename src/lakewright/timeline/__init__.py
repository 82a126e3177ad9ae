"""The history of one table: instants, their states, the view on them."""
