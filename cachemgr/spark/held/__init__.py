"""What an application holds so that hits are fast: hot sets and appended rows in memory, lists of
files, and which keys of dimensions are new."""
