"""Settings of sessions and of the service."""
