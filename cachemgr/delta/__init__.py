"""Delta tables, their versions, logs and files: the one place that reads them."""
