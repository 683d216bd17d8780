"""Alembic migrations of the metastore."""
