"""The price of not seeing: how often the planner wins when it is told where some of the face-down cards lie.

`python benchmarks/price.py` plays Classic on winnable-1000 (about ten minutes on one core) and writes
benchmarks/results/price.json and docs/price.svg. `--deals 50` is a smaller try, written to build/price; `--draw` makes
only the figure again, from the results.

Told nothing, it is the planner as it ships, game by game; told all 21 cards, it plays *thoughtfully*, with open cards.
A planner that is told something is no honest player: this is a benchmark, and no policy of the package.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from difficulty import COLOURS, Figure, mpl, svg
from numpy.typing import NDArray

from rusol_env import Arrangement, Evaluation, PlannerPolicy, Suite, deal_arrangement, evaluate, suite
from rusol_env._jit import int64, kernel
from rusol_env.cards import NUM_CARDS
from rusol_env.compare import paired_interval
from rusol_env.deals import check_whole
from rusol_env.engine import BOARD_SIZE, EMPTY, arrange, new_rows
from rusol_env.evaluate import versions, wilson_interval
from rusol_env.files import write_whole
from rusol_env.planner import Memory, new_memory
from rusol_env.rules import CLASSIC, DEAL_FACE_DOWN, NUM_COLUMNS

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "benchmarks" / "results" / "price.json"
PICTURE = ROOT / "docs" / "price.svg"
TRIES = ROOT / "build" / "price"
DEALS = 1000
SAMPLES = 50
# How many of a deal's 21 face-down cards the player is told.
KNOWN = (0, 1, 2, 4, 7, 14, 21)
# What the order is drawn from in which a deal's face-down cards are told, together with the deal's place in the suite.
ORDER_SEED = 5


def told_cards(deal: Arrangement, place: int, known: int) -> NDArray[np.int8]:
    """What is told of a deal: int8 (7, 52), the cards by column and place, EMPTY where nothing is told.

    The first `known` of one order, so that who is told more is told the same and more.
    """
    table = np.full((NUM_COLUMNS, NUM_CARDS), EMPTY, np.int8)
    down = [(column, k) for column, count in enumerate(deal.face_down) for k in range(count)]
    order: list[int] = np.random.default_rng([ORDER_SEED, place]).permutation(len(down)).tolist()
    for column, k in (down[j] for j in order[:known]):
        table[column, k] = deal.columns[column][k]
    return table


@kernel
def put_told(memory: Memory, told: NDArray[np.int8]) -> int:
    """Lay the face-down cards that are told where they lie: how many are left for `weigh` to draw.

    Args:
        memory: as `rusol_env.planner.begin` left it.
        told: int8 (7, 52). A face-down card keeps its place until it is turned up, so that of the deal holds.
    """
    base = 0
    hidden = 0
    left = 0
    laid = int64(0)
    for column in range(NUM_COLUMNS):
        for place in range(memory.down[column]):
            hidden += 1
            card = int64(told[column, place])
            if card >= 0:
                memory.deck[base + place] = card
                laid |= int64(1) << card
            else:
                memory.places[left] = base + place
                left += 1
        base += memory.heights[column]
    left = 0
    for k in range(hidden):
        if not (laid >> int64(memory.unseen[k])) & 1:
            memory.unseen[left] = memory.unseen[k]
            left += 1
    return left


class ToldPlanner(PlannerPolicy):
    """The planner, told at the start of each game where some of the face-down cards lie.

    It knows a game by its first board, and plays these deals only.
    """

    name = "told-planner"

    def __init__(
        self,
        deals: Sequence[Arrangement],
        known: int,
        seed: int = 0,
        *,
        samples: int = SAMPLES,
        threads: int = 1,
    ) -> None:
        self.known = check_whole("known", known, 0)
        self._told_of: dict[bytes, NDArray[np.int8]] = {}
        row = new_rows(1, CLASSIC)[0]
        for place, deal in enumerate(deals):
            arrange(row, deal)
            self._told_of[row[:BOARD_SIZE].tobytes()] = told_cards(deal, place, known)
        if len(self._told_of) < len(deals):
            raise ValueError("two of the deals look alike")
        self._begun: set[int] = set()
        # By place of the batch.
        self._told: dict[int, NDArray[np.int8]] = {}
        # Compile now, so that no time measured has it in it.
        put_told(new_memory(CLASSIC), np.full((NUM_COLUMNS, NUM_CARDS), EMPTY, np.int8))
        super().__init__(seed, CLASSIC, samples=samples, threads=threads)

    @property
    def settings(self) -> dict[str, Any]:
        return super().settings | {"known": self.known}

    def begin(self, slots: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        super().begin(slots, seeds)
        self._begun.update(slots.tolist())

    def act(self, observations: NDArray[Any], masks: NDArray[np.int8]) -> NDArray[np.int64]:
        for i in self._begun:
            self._told[i] = self._told_of[observations[i].tobytes()]
        self._begun.clear()
        return super().act(observations, masks)

    def _begin(
        self, memory: Memory, board: NDArray[np.int8], masks: NDArray[np.int8], streams: NDArray[np.uint64], i: int
    ) -> tuple[int, int]:
        count, hidden = super()._begin(memory, board, masks, streams, i)
        return count, put_told(memory, self._told[i]) if count > 1 else hidden


def figures(result: Evaluation, blind: Evaluation | None, known: int, seconds: float) -> dict[str, Any]:
    """What the planner that was told `known` cards did, beside the one that was told none."""
    deals = len(result.won)
    row: dict[str, Any] = {
        "known": known,
        "wins": result.wins,
        "win_rate": result.wins / deals,
        "win_rate_ci95": list(wilson_interval(result.wins, deals)),
        "cpu_seconds_a_game": round(seconds / deals, 3),
    }
    if blind is not None:
        more, fewer = int((result.won & ~blind.won).sum()), int((blind.won & ~result.won).sum())
        both = result.wins - more
        row |= {
            "only_told": more,
            "only_untold": fewer,
            "gain": (result.wins - blind.wins) / deals,
            "gain_ci95": list(paired_interval(both, fewer, more, deals - both - more - fewer)),
        }
    return row


def measure(deals: Suite, threads: int) -> dict[str, Any]:
    arrangements = [deal_arrangement(number) for number in deals]
    rows: list[dict[str, Any]] = []
    blind: Evaluation | None = None
    for known in KNOWN:
        player = ToldPlanner(arrangements, known, threads=threads)
        began = time.process_time()
        result = evaluate(player, CLASSIC, deals)
        seconds = time.process_time() - began
        rows.append(figures(result, blind, known, seconds))
        if known == 0:
            blind = result
        print(rows[-1], flush=True)
    return {
        "rules": CLASSIC.name,
        "suite": deals.name,
        "samples": SAMPLES,
        "face_down": sum(DEAL_FACE_DOWN),
        "order_seed": ORDER_SEED,
        "rows": rows,
        "versions": versions(),
    }


def picture(document: dict[str, Any]) -> bytes:
    """The wins by how many cards are told, as SVG, the same bytes every time."""
    rows: list[dict[str, Any]] = document["rows"]
    known = np.array([row["known"] for row in rows])
    share = 100 * np.array([row["win_rate"] for row in rows])
    ends = 100 * np.array([row["win_rate_ci95"] for row in rows])
    with mpl.rc_context(
        {"svg.hashsalt": "rusol", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(7, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.fill_between(known, ends[:, 0], ends[:, 1], color=COLOURS["classic"], alpha=0.2, linewidth=0)
        axes.plot(known, share, color=COLOURS["classic"], marker="o", clip_on=False)
        for k, point in enumerate(zip(known, share, strict=True)):
            # Over the line and under it in turn: the first of them lie close together.
            offset = (0, -16 if k % 2 else 8)
            axes.annotate(f"{point[1]:.1f}", point, offset, textcoords="offset points", ha="center")
        axes.set(
            xticks=known,
            xlim=(-0.7, known[-1] + 0.7),
            ylim=(None, 100),
            xlabel=f"face-down cards that the planner is told, of {document['face_down']} (pale: 95 % interval)",
            ylabel=f"wins of {document['suite']}, %",
        )
        axes.grid(alpha=0.3)
    return svg(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description="The price of not seeing.")
    parser.add_argument("--deals", type=int, default=DEALS, help="how many deals; fewer than all go to build/price")
    parser.add_argument("--threads", type=int, default=1, help="how many share the games; the wins do not depend on it")
    parser.add_argument("--draw", action="store_true", help="only make the figure again")
    options = parser.parse_args()
    try:
        deals = suite(f"winnable-{options.deals}", CLASSIC)
        check_whole("threads", options.threads, 1)
    except ValueError as error:
        parser.error(str(error))
    result, target = RESULT, PICTURE
    if options.deals != DEALS:
        result, target = TRIES / RESULT.name, TRIES / PICTURE.name
        TRIES.mkdir(parents=True, exist_ok=True)
    if not options.draw:
        write_whole(result, (json.dumps(measure(deals, options.threads), indent=2) + "\n").encode())
    write_whole(target, picture(json.loads(result.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
