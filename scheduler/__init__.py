"""When to refresh: triggers, what is due, order, back-off and leases. Pure, as protocols."""
