"""What a condition says: domains, equivalences, implication, what may raise or be NULL."""
