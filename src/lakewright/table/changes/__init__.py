"""Change streams: what happened to each record, with the images before and after."""
