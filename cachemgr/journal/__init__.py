"""Records of every change beside the caches' tables, and a metastore made from them again."""
