"""python3 -m hearsay.lab: the same as the command hearsay-lab."""
import sys

from .cli import main

sys.exit(main())
