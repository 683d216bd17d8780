"""The metastore: what caches exist, what they hold, and who is refreshing them."""
