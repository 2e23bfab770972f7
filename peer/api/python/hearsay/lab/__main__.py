"""python3 -m hearsay.lab: runs the command hearsay-lab."""
import sys

from .cli import main

sys.exit(main())
