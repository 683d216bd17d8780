"""What each setting of Spark and of Delta Lake can change: one table, a reason a line."""
