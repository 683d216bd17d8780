"""What is remembered of decisions, by the shape of the query."""
