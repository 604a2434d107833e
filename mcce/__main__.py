"""`python -m mcce` is the command `mcce`."""

import sys

from mcce.cli import main

sys.exit(main())
