"""`python -m cachemgr` is the command line."""

from cachemgr.cli import main

if __name__ == "__main__":
    main()
