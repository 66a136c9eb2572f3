"""What the tables of a run say about the overlay: metrics over intervals, topics, messages."""
