"""``python -m rusol_env`` is the command `rusol`."""

import sys

from rusol_env.cli import main

sys.exit(main())
