"""`python -m helpers.training` makes or completes the record of lesson 4: see `sweep`."""

import sys

from helpers.training.sweep import main

sys.exit(main())
