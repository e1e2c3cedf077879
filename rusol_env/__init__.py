"""Russian Solitaire for reinforcement learning: environment, engine, deals and policies.

Importing this package registers its environments with Gymnasium; it compiles and prints nothing.
"""

from __future__ import annotations

# Before all that takes its time: see there.
import rusol_env._interrupt  # noqa: F401  # pyright: ignore[reportUnusedImport]

# isort: split
from typing import Final

import gymnasium

from rusol_env.compare import Comparison, compare
from rusol_env.deals import (
    Arrangement,
    DealRecord,
    Split,
    Suite,
    arrangement,
    deal_arrangement,
    decode_code,
    encode_code,
    pysolfc_arrangement,
    read_deals,
    suite,
)
from rusol_env.env import RussianSolitaireEnv
from rusol_env.evaluate import Evaluation, evaluate, save
from rusol_env.game import Game, IllegalMove, Move, NothingToUndo, decode_action, encode_action, parse_move
from rusol_env.labels import Verdict, labels
from rusol_env.observe import Visible, decode_board, decode_cards
from rusol_env.policies import GreedyPolicy, PlannerPolicy, Policy, RandomPolicy, sample_legal
from rusol_env.record import Record, Recorder, Step, own_version
from rusol_env.rules import CLASSIC, RELAXED, VARIANTS, YUKON, Rejection, Rules
from rusol_env.solve_many import Verdicts, solve_many
from rusol_env.solver import Solution, Solver, WinnableDeals, solve
from rusol_env.vector import RussianSolitaireVectorEnv

__all__ = [
    "CLASSIC",
    "ENV_ID",
    "RELAXED",
    "VARIANTS",
    "YUKON",
    "Arrangement",
    "Comparison",
    "DealRecord",
    "Evaluation",
    "Game",
    "GreedyPolicy",
    "IllegalMove",
    "Move",
    "NothingToUndo",
    "PlannerPolicy",
    "Policy",
    "RandomPolicy",
    "Record",
    "Recorder",
    "Rejection",
    "Rules",
    "RussianSolitaireEnv",
    "RussianSolitaireVectorEnv",
    "Solution",
    "Solver",
    "Split",
    "Step",
    "Suite",
    "Verdict",
    "Verdicts",
    "Visible",
    "WinnableDeals",
    "arrangement",
    "compare",
    "deal_arrangement",
    "decode_action",
    "decode_board",
    "decode_cards",
    "decode_code",
    "encode_action",
    "encode_code",
    "evaluate",
    "labels",
    "parse_move",
    "pysolfc_arrangement",
    "read_deals",
    "sample_legal",
    "save",
    "solve",
    "solve_many",
    "suite",
]

__version__ = own_version()

ENV_ID: Final = "rusol_env/RussianSolitaire-v0"
"""The environment; ``rules=`` chooses the rule set (classic by default)."""

# ENV_ID, and one id a rule set: rusol_env/RussianSolitaireClassic-v0 and so on.
for _infix, _kwargs in [("", {}), *((name.title(), {"rules": name}) for name in VARIANTS)]:
    gymnasium.register(  # pyright: ignore[reportUnknownMemberType] (its kwargs are a bare dict)
        ENV_ID.replace("-v0", f"{_infix}-v0"),
        entry_point="rusol_env.env:RussianSolitaireEnv",
        vector_entry_point="rusol_env.vector:RussianSolitaireVectorEnv",
        kwargs=_kwargs,
    )
