"""Which files filters by functions open: the table of docs/pruning.md."""
