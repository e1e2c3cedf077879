"""`rusol play`: the table and its memory, what the server answers and to whom, and the terminal."""

from __future__ import annotations

import http.client
import io
import json
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_hidden_cards import pair

from rusol_env import Game, GreedyPolicy, IllegalMove, Move, NothingToUndo, Record, Recorder, evaluate, parse_move
from rusol_env.analysis import judge
from rusol_env.cards import card_text, parse_card
from rusol_env.cli import main
from rusol_env.evaluate import Evaluation
from rusol_env.files import only_user
from rusol_env.rules import RELAXED, VARIANTS
from rusol_env.server import is_own_host, make_app
from rusol_env.solver import Verdict
from rusol_env.table import OPTIONS, Table


def won_record() -> Record:
    """The shortest game that greedy wins among the first deals of Relaxed."""
    recorder = Recorder()
    result: Evaluation = evaluate(GreedyPolicy(0), "relaxed", 40, watch=recorder)
    records = [record for _, record in recorder.records(result.numbers.tolist(), RELAXED, {"name": "greedy"})]
    return min((record for record in records if record.game().won), key=lambda record: len(record.steps))


# ---- the table ------------------------------------------------------------------------------------------------------


def test_a_table_goes_on_after_the_program_has_ended(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.new(code="RU1-R-AAAAABB")
    chance = random.Random(0)
    for k in range(30):
        if k % 7 == 6:
            table.undo(k)
        else:
            table.play(chance.choice(table.game.legal_moves()), k + 0.5)
    table.choose({"four_colours": True, "auto_placement": True})
    again = Table(tmp_path)
    assert again.view() == table.view()
    assert again.record() == table.record()
    assert again.options == OPTIONS | {"four_colours": True, "auto_placement": True}
    while again.game.undo_left:
        again.undo(99)
        table.undo(99)
    assert again.game.columns == table.game.columns
    with pytest.raises(NothingToUndo):
        again.undo()


def test_undo_reaches_100_moves_back_also_after_a_restart(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.new(code="RU1-R-AAAAABB")
    chance = random.Random(1)
    for _ in range(110):
        table.play(chance.choice(table.game.legal_moves()))
    table = Table(tmp_path)
    assert table.view()["undo"] == 100
    for _ in range(100):
        table.undo()
    with pytest.raises(NothingToUndo, match="the last 100"):
        table.undo()


@pytest.mark.parametrize("state", ["", "{}", '{"record": {}}', "[" * 10_000, '{"record": null, "options": 3}'])
def test_a_damaged_state_is_put_aside_and_said(state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "play.json").write_text(state, encoding="utf-8")
    table = Table(tmp_path)
    (aside,) = tmp_path.glob("play.damaged-*.json")
    assert aside.read_text(encoding="utf-8") == state
    assert str(aside) in capsys.readouterr().err
    assert table.game.legal_moves() is not None
    assert Table(tmp_path).view() == table.view()


def test_a_won_game_is_saved_once_and_an_unfinished_one_when_the_next_begins(tmp_path: Path) -> None:
    table = Table(tmp_path)
    record = won_record()
    table.new(code=record.code)
    for k, step in enumerate(record.steps):
        assert step.move is not None
        table.play(step.move, k)
    assert table.game.won
    (path,) = (tmp_path / "games").iterdir()
    assert table.view()["saved"] == path.name
    saved = Record.load(path)
    assert saved.game().won
    assert saved.game().score == 625
    assert saved.player["name"] == "person"
    assert [step.seconds for step in saved.steps] == list(range(len(saved.steps)))
    table.new("classic")
    table.new("classic")
    assert len(list((tmp_path / "games").iterdir())) == 1  # a deal that nobody touched is not kept
    while not table.game.legal_moves():
        table.new("classic")
    table.play(table.game.legal_moves()[0])
    table.new("relaxed")
    assert len(list((tmp_path / "games").iterdir())) == 2
    assert table.game.rules is RELAXED


def test_who_played_and_how_many_hints_are_in_the_record(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.new(code="RU1-R-AAAAABB")
    table.play(table.game.legal_moves()[0])
    move = table.advice("greedy")
    assert move is not None
    table.count_hint()
    table.play(move, player="greedy")
    assert Table(tmp_path).record().player == {"name": "person and greedy", "hints": 1}


def test_new_games_are_deals_that_evaluations_do_not_use(tmp_path: Path) -> None:
    table = Table(tmp_path)
    for rules in VARIANTS:
        table.new(rules)
        assert table.game.rules.name == rules
        assert str(table.game.code).rpartition("-")[2][0] != "A"


def test_refused_options_codes_and_policies_change_nothing(tmp_path: Path) -> None:
    table = Table(tmp_path)
    before = table.view()
    with pytest.raises(ValueError, match="is not an option"):
        table.choose({"four_colours": "yes"})
    with pytest.raises(ValueError, match="is not an option"):
        table.choose({"cheat": True})
    with pytest.raises(ValueError, match="a valid code looks like"):
        table.new(code="RU1-C-A")
    with pytest.raises(ValueError, match="unknown rules"):
        table.new(rules="poker")
    with pytest.raises(ValueError, match="unknown policy"):
        table.advice("oracle")
    with pytest.raises(IllegalMove):
        table.play(Move(12, 7))
    for seconds in (float("nan"), float("inf"), -5.0):
        table.tick(seconds)
    assert table.view() == before


@pytest.mark.parametrize("number", range(10))
def test_what_the_page_is_sent_does_not_depend_on_hidden_cards(number: int, tmp_path: Path) -> None:
    """Scenario 18, up to the first card that turns up, after undo too; all refusals as well."""
    chance = random.Random(number)
    tables: list[Table] = []
    for k, deal in enumerate(pair(number, chance)):
        table = Table(tmp_path / str(k))
        table.game = Game(deal, "relaxed")
        table.version = 1
        tables.append(table)
    for _ in range(30):
        views = [json.dumps(table.view()) for table in tables]
        assert views[0] == views[1]
        assert tables[0].advice("random") is not None or tables[1].advice("random") is None
        move = Move(chance.randrange(52), chance.randrange(8))
        answers = [table.game.why_not(move) for table in tables]
        assert answers[0] == answers[1]
        legal = tables[0].game.legal_moves()
        if not legal:
            break
        down = sum(column.count(None) for column in tables[0].game.columns)
        move = chance.choice(legal)
        for table in tables:
            table.play(move)
        if sum(column.count(None) for column in tables[0].game.columns) < down:
            for table in tables:
                table.undo()
        assert json.dumps(tables[0].view()) == json.dumps(tables[1].view())


# ---- the server -----------------------------------------------------------------------------------------------------


class Server:
    """The real server on a free port, and a client that can lie about who it is."""

    def __init__(self, folder: Path) -> None:
        import uvicorn

        self.table = Table(folder)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(make_app(self.table), log_level="error", lifespan="off", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],))
        self.thread.start()

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()

    def ask(
        self, path: str, body: Any = None, *, method: str | None = None, headers: dict[str, str | None] | None = None
    ) -> tuple[int, dict[str, str], bytes]:
        sent: dict[str, str | None] = {"Host": f"127.0.0.1:{self.port}"}
        data = None
        if body is not None:
            sent |= {"Origin": self.origin, "Content-Type": "application/json"}
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent |= headers or {}
        # Long, since a first call may compile kernels.
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.putrequest(method or ("GET" if body is None else "POST"), path, skip_host=True)
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            response = connection.getresponse()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
        finally:
            connection.close()

    def call(self, name: str, **body: Any) -> tuple[int, dict[str, Any]]:
        status, _, data = self.ask(f"/api/{name}", {"version": self.table.version} | body)
        return status, json.loads(data)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("starlette", reason="the page needs the extra [play]")
    pytest.importorskip("uvicorn", reason="the page needs the extra [play]")
    running = Server(tmp_path_factory.mktemp("play"))
    yield running
    running.close()


def test_the_page_is_served_with_a_policy_that_lets_nothing_else_in(server: Server) -> None:
    status, headers, page = server.ask("/")
    assert status == 200
    assert headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    text = page.decode()
    assert "<script>" not in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    for name in ("board.js", "play.js", "style.css", "palette.css"):
        status, headers, data = server.ask(f"/{name}")
        assert (status, headers["x-content-type-options"]) == (200, "nosniff")
        # "Nothing rendered as HTML": no script of ours has a way to do that.
        assert not any(word in data.decode() for word in ("innerHTML", "outerHTML", "insertAdjacent", "eval("))


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/web/play.js",
        "/play.html",
        "/games",
        "/play.json",
        "/api",
        "/api/",
        "/api/../play.js",
        "/api/state/../../x",
        "/server.py",
        "/board.js/",
        "/board.js%00.html",
    ],
)
def test_no_other_path_is_served(server: Server, path: str) -> None:
    status, _, data = server.ask(path)
    assert status in (404, 405), path
    assert b"root:" not in data
    assert b"[project]" not in data


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "8.8.8.8",
        "[2001:db8::1]",
    ],
)
def test_a_foreign_name_that_leads_here_is_refused(server: Server, host: str) -> None:
    for path in ("/", "/api/state", "/api/record"):
        status, _, data = server.ask(path, headers={"Host": host})
        assert status in (400, 403)
        assert b"columns" not in data
    before = server.table.view()
    status, _, _ = server.ask("/api/new", {"version": server.table.version}, headers={"Host": host})
    assert status in (400, 403)
    assert server.table.view() == before


def test_a_request_without_host_is_refused(server: Server) -> None:
    assert server.ask("/api/state", headers={"Host": None})[0] in (400, 403)


@pytest.mark.parametrize(
    ("host", "served", "own"),
    [
        ("127.0.0.1:8365", "127.0.0.1", True),
        ("localhost:9000", "127.0.0.1", True),
        ("LOCALHOST", "127.0.0.1", True),
        ("[::1]:8365", "127.0.0.1", True),
        ("192.168.1.5:8365", "127.0.0.1", False),
        ("192.168.1.5:8365", "0.0.0.0", True),
        ("evil.example", "0.0.0.0", False),
        ("my-machine:8365", "my-machine", True),
        ("[::1", "127.0.0.1", False),
        ("localhost:80@evil.example", "127.0.0.1", False),
        ("localhost:evil.example", "127.0.0.1", False),
        ("", "127.0.0.1", False),
    ],
)
def test_which_hosts_are_own(host: str, served: str, own: bool) -> None:
    assert is_own_host(host, served) is own


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": None},
    ],
)
def test_only_the_own_page_can_change_anything(server: Server, headers: dict[str, str | None]) -> None:
    before = server.table.view()
    status, _, _ = server.ask("/api/new", {"version": server.table.version}, headers=headers)
    assert status in (403, 415)
    assert server.table.view() == before


def test_another_site_can_link_to_the_page_and_read_nothing(server: Server) -> None:
    assert server.ask("/", headers={"Sec-Fetch-Site": "cross-site"})[0] == 200
    assert server.ask("/api/state", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert server.ask("/api/state", headers={"Origin": "http://evil.example"})[0] == 403
    _, headers, _ = server.ask("/api/state")
    assert not any(name.startswith("access-control") for name in headers)


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("move", b"", 400),
        ("move", b"[]", 400),
        ("move", b"[" * 10_000, 400),
        ("move", b"x" * 20_000, 413),
        ("move", {"version": -1}, 409),
        ("move", {}, 400),
        ("move", {"card": 52, "to": 0}, 400),
        ("move", {"card": 1.5, "to": 0}, 400),
        ("move", {"card": "1", "to": 0}, 400),
        ("move", {"card": True, "to": 0}, 400),
        ("move", {"card": 10**400, "to": 0}, 400),
        ("move", {"card": -1, "to": 0}, 400),
        ("move", {"card": 1, "to": 8}, 400),
        ("move", {"card": 1, "to": 0, "seconds": "x"}, 400),
        ("place", {"card": 99}, 400),
        ("new", {"code": "<img src=x onerror=alert(1)>"}, 400),
        ("new", {"code": 5}, 400),
        ("new", {"code": "R" * 300}, 400),
        ("new", {"rules": "poker"}, 400),
        ("watch", {"policy": "../../etc/passwd"}, 400),
        ("hint", {"by": "oracle"}, 400),
        ("options", {"four_colours": 1}, 400),
        ("options", {"__proto__": True}, 400),
        ("nothing", {}, 404),
    ],
)
def test_calls_that_make_no_sense_change_nothing(server: Server, name: str, body: Any, status: int) -> None:
    before = server.table.view()
    sent: Any = body if isinstance(body, bytes) else {"version": server.table.version, **body}
    found, headers, data = server.ask(f"/api/{name}", sent)
    assert found == status, data
    assert headers["content-type"] == "application/json"
    assert json.loads(data)["sentence"]
    assert server.table.view() == before


def test_seconds_beyond_all_bounds(server: Server) -> None:
    for seconds in ("1e999", "-1e999", "NaN", "9" * 400):
        status, _, _ = server.ask("/api/tick", f'{{"seconds": {seconds}}}'.encode())
        assert status in (200, 400)
        assert 0 <= server.table.seconds <= 1e8
    assert server.ask("/api/state")[0] == 200


def test_a_refused_move_says_why_and_an_undo_takes_back(server: Server) -> None:
    _, answer = server.call("new", code="RU1-C-AAAAABB")
    assert answer["view"]["code"] == "RU1-C-AAAAABB"
    status, answer = server.call("move", card=int(parse_move("JH > 7").card), to=6)
    assert (status, answer["refused"]) == (200, True)
    assert answer["sentence"] == "The J♥ needs the Q♥ to lie on: same suit, one higher."
    status, answer = server.call("move", card=20, to=2, seconds=3.5)
    assert (status, "sentence" in answer) == (200, False)
    assert answer["view"]["last"] == {"card": 20, "to": 2, "text": "8♥ → column 3"}
    assert answer["view"]["seconds"] == 3.5
    status, answer = server.call("undo")
    assert answer["view"]["last"] is None
    assert answer["view"]["moves"] == 1
    status, answer = server.call("undo")
    assert (answer["refused"], answer["sentence"][:24]) == (True, "There is no move to undo")


def big_group(size: int) -> Game:
    """Column 1 is a group of that many cards whose lowest fits the king in column 2."""
    queen, king = parse_card("QS"), parse_card("KS")
    others = [card for card in range(51, -1, -1) if card not in (queen, king)]
    return Game.from_columns([[queen, *others[: size - 1]], [king], others[size - 1 :], [], [], [], []], [0] * 7)


def test_a_group_of_20_moves_and_one_of_21_is_refused(server: Server) -> None:
    """Scenario 3, as the page is told; the card moves all the same when the group is 20."""
    for size in (20, 21):
        server.call("new")
        server.table.game = big_group(size)
        view = server.table.view()
        assert ([parse_card("QS"), 1] in view["legal"]) == (size == 20)
        _, answer = server.call("move", card=parse_card("QS"), to=1)
        if size == 20:
            assert len(answer["view"]["columns"][1]) == 21
        else:
            assert answer["sentence"] == "The Q♠ and the cards on it are 21 cards: at most 20 move at once."
            assert answer["view"] == view


def test_a_face_down_card_cannot_be_moved_by_a_call(server: Server) -> None:
    """Scenario 1: its values would be in sequence, but it lies face down."""
    server.call("new")
    columns = [["4C", "3C"], ["5C"], [], [], [], [], []]
    rest = [c for c in range(52) if c not in {parse_card(n) for n in ("4C", "3C", "5C")}]
    columns[2] = [card_text(c) for c in reversed(rest)]
    server.table.game = Game.from_columns(columns, [1, 0, 0, 0, 0, 0, 0])
    _, answer = server.call("move", card=parse_card("4C"), to=1)
    assert "still lies face down" in answer["sentence"]
    assert all(card != parse_card("4C") for card, _ in answer["view"]["legal"])
    assert answer["view"]["columns"][0] == [None, parse_card("3C")]


def test_two_windows_never_play_on_two_games(server: Server) -> None:
    server.call("new", code="RU1-C-AAAAABB")
    seen = server.table.version
    assert server.call("move", card=20, to=2)[0] == 200
    status, answer = server.call("move", version=seen, card=32, to=1)
    assert status == 409
    assert "another window" in answer["sentence"]
    assert answer["view"]["version"] == server.table.version
    assert len(server.table.game.line) == 1
    assert server.call("move", card=32, to=1)[0] == 200
    # What is no move makes no window stale.
    seen = server.table.version
    server.call("options", placement_help=False)
    server.call("tick", seconds=12)
    assert server.table.version == seen


def test_a_double_tap_places_as_the_rules_say(server: Server) -> None:
    server.call("new", code="RU1-R-AAAAABB")
    for _ in range(20):
        view = server.table.view()
        if not view["place"]:
            break
        card, to = next((int(card), to) for card, to in view["place"].items())
        _, answer = server.call("place", card=card)
        assert (answer["view"]["last"]["card"], answer["view"]["last"]["to"]) == (card, to)
    _, answer = server.call("new", code="RU1-C-AAAAABB")
    _, answer = server.call("place", card=8)  # the 9♠ fits nowhere
    assert answer["sentence"] == "There is no place for this card now."


def test_a_policy_plays_and_gives_hints(server: Server) -> None:
    server.call("new", code="RU1-R-AAAAABB")
    status, answer = server.call("hint", by="greedy")
    assert status == 200
    assert answer["hint"] in answer["view"]["legal"]
    assert str(Move(*answer["hint"])) in answer["sentence"]
    while not (answer["view"]["won"] or answer["view"]["stuck"] or answer["view"]["moves"] > 400):
        status, answer = server.call("watch", policy="greedy")
        assert status == 200
        if "sentence" in answer:
            assert answer["sentence"] == "greedy finds no move here."
            break
    assert answer["view"]["moves"] > 10
    assert server.table.record().player["name"] == "greedy"


def test_the_solver_gives_a_hint_and_plays_to_a_win(server: Server) -> None:
    _, answer = server.call("new", code="RU1-R-AAAAABB")
    _, answer = server.call("hint", by="solver")
    assert answer["sentence"].startswith(f"It can be won from here: {Move(*answer['hint'])}, and ")
    assert answer["hint"] in answer["view"]["legal"]
    for _ in range(400):
        status, answer = server.call("watch", policy="solver")
        assert (status, answer.get("sentence")) == (200, None)
        if answer["view"]["won"]:
            break
    assert server.table.game.won
    assert server.table.record().player == {"name": "solver", "hints": 1}
    _, answer = server.call("hint", by="solver")
    assert (answer["hint"], answer["sentence"]) == (None, "The game is won.")


def test_the_solver_says_that_a_deal_is_lost(server: Server) -> None:
    number = next(number for number in range(20) if judge(Game.from_number(number)).verdict is Verdict.UNWINNABLE)
    server.call("new", code=Game.from_number(number).code)
    _, answer = server.call("hint", by="solver")
    assert (answer["hint"], answer["sentence"]) == (None, "It cannot be won from here any more.")
    _, answer = server.call("watch", policy="solver")
    assert answer["sentence"] == "The solver has no way to win from here."
    assert server.table.game.line == ()


def test_the_record_of_the_game_can_be_taken_away(server: Server) -> None:
    server.call("new", code="RU1-C-AAAAABB")
    server.call("move", card=20, to=2)
    status, headers, data = server.ask("/api/record")
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="rusol-RU1-C-AAAAABB.json"'
    assert Record.parse(data).game().line == (Move(20, 2),)


def test_no_other_site_can_look_back_at_the_game(server: Server) -> None:
    assert server.ask("/replay", headers={"Sec-Fetch-Site": "cross-site"})[0] == 403
    assert server.ask("/replay", headers={"Host": "evil.example"})[0] == 403


def test_a_disk_that_takes_nothing_more_is_said(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    server.call("new", code="RU1-C-AAAAABB")
    monkeypatch.setattr("rusol_env.table.write_whole", full)
    status, answer = server.call("move", card=20, to=2)
    assert status == 500
    assert "No space left on device" in answer["sentence"]


# ---- the command ----------------------------------------------------------------------------------------------------


def test_a_port_that_is_taken_is_said_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("uvicorn", reason="the page needs the extra [play]")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["play", "--port", str(port), "--data", str(tmp_path)]) == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in capsys.readouterr().err
    assert main(["play", "--port", "70000", "--data", str(tmp_path)]) == 2
    assert "--port is 70000" in capsys.readouterr().err


def test_one_folder_serves_one_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with only_user(tmp_path):
        assert main(["play", "--terminal", "--data", str(tmp_path)]) == 2
    assert f"another rusol uses {tmp_path}" in capsys.readouterr().err
    with only_user(tmp_path):
        pass


def test_a_killed_server_leaves_the_game_and_the_folder(tmp_path: Path) -> None:
    """The command itself, in a process of its own: played over HTTP, killed, started again, interrupted."""
    pytest.importorskip("uvicorn", reason="the page needs the extra [play]")
    command = [sys.executable, "-m", "rusol_env", "play", "--port", "0", "--data", str(tmp_path)]

    def start(*more: str) -> tuple[subprocess.Popen[str], int]:
        process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line
        return process, int(found[1])

    def ask(port: int, name: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        headers = {"Origin": f"http://127.0.0.1:{port}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body)
        connection.request("GET" if body is None else "POST", f"/api/{name}", data, headers)
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer["view"]

    process, port = start("--code", "RU1-C-AAAAABB")
    view = ask(port, "state")
    view = ask(port, "move", {"version": view["version"], "card": 20, "to": 2})
    process.kill()
    process.communicate()
    process, port = start()
    assert ask(port, "state") == view
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


def in_terminal(
    lines: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str
) -> str:
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))
    assert main(["play", "--terminal", "--data", str(folder), *more]) == 0
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return out


def test_the_game_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = "8h 3\nJH > 7\nhello\nm\nu\nu\nh greedy\nh nobody\nn poker\ns\n7D > 2\n?\nq\n"
    out = in_terminal(typed, tmp_path, monkeypatch, capsys, "--code", "RU1-C-AAAAABB")
    assert "The J♥ needs the Q♥ to lie on: same suit, one higher." in out
    assert "'hello' is not a move" in out
    assert "There is no move to undo" in out
    assert "there is no hint by 'nobody'" in out
    assert "unknown rules 'poker'" in out
    assert "7♦ → column 2" in out
    assert len(list((tmp_path / "games").iterdir())) == 1
    # The input ended, or q: the game is there again.
    out = in_terminal("", tmp_path, monkeypatch, capsys)
    assert "classic RU1-C-AAAAABB  score 5  moves 2" in out


def test_a_win_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = won_record()
    typed = "".join(f"{step.move.ascii}\n" for step in record.steps if step.move is not None)
    out = in_terminal(typed, tmp_path, monkeypatch, capsys, "--code", str(record.code))
    assert "score 625" in out
    assert "You won. The game is saved as" in out
    shutil.rmtree(tmp_path)
