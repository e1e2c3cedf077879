"""What all tests share: Hypothesis without deadlines, since a first call may compile a kernel."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("rusol", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("rusol")
