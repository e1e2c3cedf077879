"""The game in the browser: a page and a few calls, served to this machine by Starlette and uvicorn (extra ``[play]``).

The page is in ``web/``. It shows what `rusol_env.table.Table.view` says and sends back what the player does; it
knows no rule. Every answer is the whole view, so a page cannot drift from the game.

Who may ask: the ``Host`` of a request must be this machine by number or as localhost (a web site that has its own
name resolve to this machine is refused), and a request that changes something must come from a page of this
server (``Origin``) as JSON, which no other site's page can send. Only the files that `_files` lists are served.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any, Final, cast

from rusol_env.analysis import analyse, judge
from rusol_env.game import IllegalMove, Move, NothingToUndo, encode_action
from rusol_env.render import palette_css, sprites, web
from rusol_env.replay import html as replay_page
from rusol_env.table import Table

DEFAULT_PORT: Final = 8365
# A call is a few numbers.
_MAX_BODY: Final = 16 << 10
SOLVER: Final = "solver"
# What the solver may spend on a hint.
_HINT_SECONDS: Final = 5.0
# And on each step of a game that is looked back at.
_STEP_SECONDS: Final = 2.0
# Scripts and styles come from this server only, and nothing else is fetched, framed or sent.
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_TYPES: Final = {"html": "text/html", "js": "text/javascript", "css": "text/css"}


def _files() -> dict[str, tuple[str, str]]:
    """All that is served beside the calls: its path, then its type and text."""
    page = web("play.html").replace("<!-- sprites -->", sprites())
    found = {"/": ("text/html", page), "/palette.css": ("text/css", palette_css())}
    for name in ("board.js", "play.js", "style.css"):
        found[f"/{name}"] = (_TYPES[name.rpartition(".")[2]], web(name))
    return found


class _Refused(Exception):
    """A call that makes no sense; its text is for whoever wrote the caller."""


def _whole(body: dict[str, Any], key: str) -> int:
    value = body.get(key)
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Refused(f"{key} is {value!r} and must be a whole number")
    return value


def _text(body: dict[str, Any], key: str) -> str | None:
    value = body.get(key)
    if value is not None and (not isinstance(value, str) or len(value) > 200):
        raise _Refused(f"{key} must be a short text")
    return value


def _seconds(body: dict[str, Any]) -> float:
    value = body.get("seconds", 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _Refused("seconds must be a number")
    return float(value)


def _move(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    move = Move(_whole(body, "card"), _whole(body, "to"))
    try:
        encode_action(*move)
    except ValueError as error:
        raise _Refused(str(error)) from None
    table.play(move, _seconds(body))
    return {}


def _place(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    card = _whole(body, "card")
    try:
        move = table.game.double_tap(card)
    except ValueError as error:
        raise _Refused(str(error)) from None
    if move is None:
        return {"sentence": "There is no place for this card now."}
    table.play(move, _seconds(body))
    return {}


def _undo(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    table.undo(_seconds(body))
    return {}


def _new(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    table.new(_text(body, "rules"), _text(body, "code"))
    return {}


def _options(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    table.choose({key: value for key, value in body.items() if key not in ("version", "seconds")})
    return {}


def _tick(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    table.tick(_seconds(body))
    return {}


def _watch(table: Table, body: dict[str, Any]) -> dict[str, Any]:
    name = _text(body, "policy") or ""
    if name == SOLVER:
        version, plan = table.plan
        if version != table.version or not plan:
            return {"sentence": "The solver has no way to win from here."}
        table.play(plan[0], _seconds(body), player=name)
        table.plan = table.version, plan[1:]
        return {}
    move = table.advice(name)
    if move is None:
        return {"sentence": f"{name} finds no move here."}
    table.play(move, _seconds(body), player=name)
    return {}


# What the page can ask for, and whether the game must still be as the page saw it.
_CALLS: Final[dict[str, tuple[Callable[[Table, dict[str, Any]], dict[str, Any]], bool]]] = {
    "move": (_move, True),
    "place": (_place, True),
    "undo": (_undo, True),
    "new": (_new, True),
    "watch": (_watch, True),
    "options": (_options, False),
    "tick": (_tick, False),
}


def _hint(table: Table, body: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """The hint that is asked for, as work for another thread: the solver may take seconds."""
    by = _text(body, "by") or ""
    if by in table.policies:
        move = table.advice(by)
        return lambda: {
            "hint": None if move is None else list(move),
            "sentence": f"{by} finds no move here." if move is None else f"{by.title()} would play {move}.",
        }
    if by != SOLVER:
        raise _Refused(f"there is no hint by {by!r}: ask for {SOLVER}, {', '.join(table.policies)}")
    game, version = table.record().game(), table.version

    def search() -> dict[str, Any]:
        found = judge(game, time_limit=_HINT_SECONDS)
        table.plan = version, found.moves
        if found.moves:
            sentence = f"It can be won from here: {found.moves[0]}, and {len(found.moves) - 1} moves after it."
            return {"hint": list(found.moves[0]), "sentence": sentence}
        if game.won:
            return {"hint": None, "sentence": "The game is won."}
        known = {"unwinnable": "It cannot be won from here any more.", "winnable": "It can be won from here."}
        unknown = f"The solver could not tell within {_HINT_SECONDS:g} seconds."
        return {"hint": None, "sentence": known.get(found.verdict.text, unknown)}

    return search


def is_own_host(host: str, served: str) -> bool:
    """Whether the ``Host`` of a request names this machine, and not a foreign name that was led here.

    Args:
        host: the header: a name or address, and mostly a port.
        served: the address that the server listens on.
    """
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^:@/\[\]]+))(?::[0-9]+)?", host.lower())
    if found is None:
        return False
    name = found[1] or found[2]
    if name == "localhost" or name == served.lower():
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    # An address cannot be made to lead elsewhere; but a server for this machine alone answers to no other.
    return address.is_loopback or not _is_loopback(served)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def make_app(table: Table, served: str = "127.0.0.1") -> Any:
    """The ASGI application for a table.

    Args:
        table: what is played on.
        served: the address that the server listens on.

    Raises:
        ImportError: Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import Request
        from starlette.responses import JSONResponse, PlainTextResponse, Response
        from starlette.routing import Route
    except ImportError as error:
        raise _missing() from error

    files = _files()

    def show(request: Request) -> Response:
        kind, text = files[request.url.path]
        return Response(text, media_type=kind, headers=_HEADERS)

    def answer(more: dict[str, Any], status: int = 200) -> Response:
        return JSONResponse({"view": table.view(), **more}, status_code=status, headers=_HEADERS)

    def refuse(sentence: str, status: int) -> Response:
        return JSONResponse({"sentence": sentence}, status_code=status, headers=_HEADERS)

    async def state(request: Request) -> Response:
        return answer({})

    async def record(request: Request) -> Response:
        name = f"rusol-{table.game.code or 'game'}.json"
        text = json.dumps(table.record().document(), ensure_ascii=False, indent=1)
        headers = _HEADERS | {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="application/json", headers=headers)

    async def replay(request: Request) -> Response:
        played = table.record()

        def look_back() -> str:
            return replay_page(played, analyse(played, time_limit=_STEP_SECONDS))

        # The page brings a policy of its own, for the script and style inside it.
        headers = {name: value for name, value in _HEADERS.items() if name != "Content-Security-Policy"}
        return Response(await run_in_threadpool(look_back), media_type="text/html", headers=headers)

    async def call(request: Request) -> Response:
        name = request.path_params["name"]
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return refuse("a call is sent as application/json", 415)
        data = b""
        async for chunk in request.stream():
            data += chunk
            if len(data) > _MAX_BODY:
                return refuse("a call is not that long", 413)
        try:
            body: Any = json.loads(data)
            if not isinstance(body, dict):
                return refuse("a call is a JSON object", 400)
            body = cast(dict[str, Any], body)
            if name == "hint":
                search = _hint(table, body)
                version = table.version
                found = await run_in_threadpool(search)
                if table.version != version:
                    return answer({"sentence": "The game went on while the hint was being sought."})
                table.count_hint()
                return answer(found)
            if name not in _CALLS:
                return refuse("there is no such call", 404)
            act, fresh = _CALLS[name]
            if name == "watch" and body.get("policy") == SOLVER and table.plan[0] != table.version:
                await run_in_threadpool(_hint(table, {"by": SOLVER}))
            if fresh and _whole(body, "version") != table.version:
                return answer({"sentence": "The game went on in another window; this is how it stands."}, 409)
            return answer(act(table, body))
        except (IllegalMove, NothingToUndo) as error:
            return answer({"sentence": str(error), "refused": True})
        except _Refused as error:
            return refuse(str(error), 400)
        except (RecursionError, OverflowError):
            return refuse("a call is a few small numbers", 400)
        except OSError as error:
            return answer({"sentence": f"The game could not be written: {error}"}, 500)
        except ValueError as error:
            return answer({"sentence": str(error), "refused": True}, 400)

    async def guard(request: Request, forward: Callable[[Request], Awaitable[Response]]) -> Response:
        host = request.headers.get("host", "")
        if not is_own_host(host, served):
            return PlainTextResponse("This server answers only to the machine it runs on.", 403, _HEADERS)
        origin = request.headers.get("origin")
        own = origin == f"{request.url.scheme}://{host}"
        if (origin is not None or request.method != "GET") and not own:
            return PlainTextResponse("This server answers only to its own page.", 403, _HEADERS)
        # A link on another site may lead to the page, and to nothing else.
        site = request.headers.get("sec-fetch-site", "none")
        if request.url.path not in files and site not in ("same-origin", "none"):
            return PlainTextResponse("This server answers only to its own page.", 403, _HEADERS)
        return await forward(request)

    from starlette.middleware import Middleware
    from starlette.middleware.base import BaseHTTPMiddleware

    app = Starlette(
        routes=[
            *[Route(path, show) for path in files],
            Route("/api/state", state),
            Route("/api/record", record),
            Route("/replay", replay),
            Route("/api/{name}", call, methods=["POST"]),
        ],
        middleware=[Middleware(BaseHTTPMiddleware, dispatch=guard)],
    )
    app.router.redirect_slashes = False
    return app


def _missing() -> ImportError:
    return ImportError("the game in the browser needs starlette and uvicorn: pip install 'rusol-env[play]'")


def serve(
    table: Table, host: str = "127.0.0.1", port: int = DEFAULT_PORT, ready: Callable[[str], None] | None = None
) -> None:
    """Serve the page until it is interrupted.

    Args:
        table: what is played on.
        host: the address to listen on; any other than this machine's own lets others play and read the game.
        port: 0 takes a free one.
        ready: called with the page's address once it answers.

    Raises:
        ImportError: Starlette or uvicorn is not installed.
        OSError: the address cannot be listened on.
    """
    app = make_app(table, host)
    try:
        import uvicorn
    except ImportError as error:
        raise _missing() from error
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(f"cannot listen on {host}, port {port}: {error.strerror or error}; try --port 0") from error
    with listener:
        shown = f"[{host}]" if ":" in host else host
        if ready is not None:
            ready(f"http://{shown}:{listener.getsockname()[1]}/")
        config = uvicorn.Config(
            app, log_level="warning", lifespan="off", server_header=False, timeout_graceful_shutdown=1, ws="none"
        )
        uvicorn.Server(config).run(sockets=[listener])
