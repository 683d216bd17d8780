"""Who may use which cache, and what is told of it to whom."""
