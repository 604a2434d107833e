"""The command line as `python -m mcce`."""

import sys

from mcce.cli import main

if __name__ == "__main__":
    sys.exit(main())
