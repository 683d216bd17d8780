"""The REST door under /api/v1: thin, over the service and the metastore."""
