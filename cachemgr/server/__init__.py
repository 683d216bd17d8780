"""The service as a process."""
