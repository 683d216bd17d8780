"""The rows of a full refresh: a cube down the lattice of its sets, laid out in files for the reads
to come."""
