"""Carries out the statements of the DDL."""
