"""Edge lists: only the structure of an overlay, with times and without."""
