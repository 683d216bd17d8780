"""All changes to the metastore; each method is one transaction."""

from cachemgr.metastore.reader import Reader as Writer

__all__ = ["Writer"]
