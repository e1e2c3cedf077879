"""Ctrl-C while the command `rusol` is still importing: it ends, without a traceback through half of the imports.

This is imported before all else, and touches nothing where rusol_env is a library in somebody's program: only that
`sys.argv` names the command. `hear` makes Ctrl-C an exception again, once there is somebody to catch it.
"""

from __future__ import annotations

import signal
import sys
from pathlib import PurePath


def hear() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again where it ends the program at once."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# The first word is -m while `python -m rusol_env` imports the package.
if PurePath(sys.argv[0] if sys.argv else "").stem in ("rusol", "-m") and (
    signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, signal.SIG_DFL)
