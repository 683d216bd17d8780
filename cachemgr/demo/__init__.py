"""The demo: SSB data, its 13 queries, one cube, and the proof that both answers are the same."""
