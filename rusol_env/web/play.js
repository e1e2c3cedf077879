// The game in the browser. What is legal, what a move does and why it is refused is asked of the server; this
// page shows the view that comes back and turns taps, drags and keys into calls.

import { Board, FOUNDATION, cardName } from "./board.js";

const TAP_DISTANCE = 6; // pixels that a finger may slip in a tap
const DOUBLE_TAP = 380; // milliseconds
const WATCH_PAUSE = 420;
const NOTICE = 5000;

const $ = (id) => document.getElementById(id);
const board = new Board($("board"));
const tabs = new BroadcastChannel("rusol");

let view = null;
let chosen = null; // the card that is taken, by a tap or the keyboard
let focus = { column: 0, index: -1 }; // where the keyboard is; index -1 is the last card
let drag = null;
let lastTap = { card: null, time: 0 };
let watching = null;
let seconds = 0; // played in this game, as shown
let busy = Promise.resolve();

// ---- the server ------------------------------------------------------------------------------------------------

async function ask(name, body = {}) {
  try {
    const response = await fetch(`api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ version: view.version, seconds: Math.round(seconds * 10) / 10, ...body }),
    });
    const answer = await response.json();
    answer.ok = response.ok;
    if (answer.view) {
      take(answer.view);
      if (name !== "tick") tabs.postMessage(answer.view.version);
    }
    return answer;
  } catch {
    return { ok: false, sentence: "The server does not answer: is rusol play still running?" };
  }
}

// One call after another, so that each is about the game that the one before it left.
function call(name, body) {
  busy = busy.then(() => ask(name, body));
  return busy;
}

// A call that a player made: its sentence is shown, if the options say so.
async function act(name, body) {
  letGo();
  const before = view;
  const answer = await call(name, body);
  if (answer.sentence && (view.options.interactive_rules || !answer.refused)) say(answer.sentence);
  else if (answer.refused) announce(answer.sentence);
  else if (view.last && view.moves > before.moves) announce(view.last.text);
  if (view.won && !before.won) celebrate();
  else if (view.stuck && !before.stuck) say("No move is left. Undo, or deal a new game.");
  return answer;
}

async function refresh() {
  const response = await fetch("api/state");
  take((await response.json()).view);
}

// ---- showing ---------------------------------------------------------------------------------------------------

function take(next) {
  const other = !view || view.code !== next.code || next.moves < view.moves || next.seconds === 0;
  seconds = other ? next.seconds : Math.max(seconds, next.seconds);
  view = next;
  board.show(view);
  document.body.classList.toggle("four-colours", view.options.four_colours);
  $("rules").textContent = view.rules[0].toUpperCase() + view.rules.slice(1);
  $("moves").textContent = view.moves;
  $("score").textContent = view.score;
  $("code").textContent = view.code ?? "none";
  $("share").disabled = !view.code;
  $("undo").disabled = view.undo === 0;
  $("undo-left").textContent = view.undo ? `(${view.undo})` : "";
  $("hint").disabled = $("watch").disabled = view.won;
  for (const box of document.querySelectorAll("#options input")) box.checked = view.options[box.name];
  fill($("policy"), [...view.policies, "solver"]);
  showTime();
  showFocus();
  describe();
}

function fill(select, names) {
  if (select.options.length === names.length) return;
  select.replaceChildren(
    ...names.map((name) => new Option(name === "solver" ? "solver (sees all cards)" : name, name)),
  );
  select.value = names.includes("greedy") ? "greedy" : names[0];
}

function showTime() {
  const whole = Math.floor(seconds), two = (n) => String(n).padStart(2, "0");
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  $("time").textContent = hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

// The table in words, for who reads it with a screen reader.
function describe() {
  const lines = view.columns.map((column, k) => {
    const down = column.filter((card) => card === null).length;
    const up = column.filter((card) => card !== null).map(cardName).join(", ");
    return `Column ${k + 1}: ${column.length ? "" : "empty"}${down ? `${down} face down, ` : ""}${up}`;
  });
  lines.push(...view.foundations.map((count, suit) => `Foundation: ${count ? cardName(suit * 13 + count - 1) : "empty"}`));
  $("text").replaceChildren(...lines.map((line) => Object.assign(document.createElement("p"), { textContent: line })));
}

let noticeTimer = 0;
function say(text) {
  $("notice").textContent = text;
  $("notice").hidden = false;
  announce(text);
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => ($("notice").hidden = true), NOTICE);
}

function announce(text) {
  $("announce").textContent = text;
}

function celebrate() {
  stopWatching();
  $("won-text").textContent = `${view.score} points in ${view.moves} moves and ${$("time").textContent}.`;
  $("won-saved").textContent = view.saved ? `The game is saved as ${view.saved}.` : "";
  $("won").showModal();
}

// ---- choosing and placing --------------------------------------------------------------------------------------

const destinations = (card) => view.legal.filter(([moved]) => moved === card).map(([, to]) => to);

function light(card) {
  for (const to of destinations(card)) target(card, to).classList.add("fits");
}

// What lights up for a destination: the column's last card, or its well.
function target(card, to) {
  if (to === FOUNDATION) {
    const suit = Math.floor(card / 13), count = view.foundations[suit];
    return (count && board.card(suit * 13 + count - 1)) || board.wells[FOUNDATION + suit];
  }
  const last = view.columns[to].at(-1);
  return last === undefined ? board.wells[to] : board.card(last);
}

function dark() {
  for (const element of board.root.querySelectorAll(".fits, .over, .hinted")) {
    element.classList.remove("fits", "over", "hinted");
  }
}

function choose(card) {
  letGo();
  chosen = card;
  for (const element of board.group(card)) element.classList.add("chosen");
  if (view.options.placement_help) light(card);
  announce(`${cardName(card)} taken`);
}

function letGo() {
  chosen = null;
  dark();
  for (const element of board.root.querySelectorAll(".chosen")) element.classList.remove("chosen");
}

const move = (card, to) => act("move", { card, to });

// ---- the pointer -----------------------------------------------------------------------------------------------

function under(event) {
  const element = event.target.closest(".card, .well");
  if (!element) return {};
  if (element.classList.contains("well")) {
    const place = Number(element.dataset.place);
    return { column: Math.min(place, FOUNDATION) };
  }
  const card = element.dataset.card === "" ? null : Number(element.dataset.card);
  return { card, column: Number(element.dataset.column), element };
}

board.root.addEventListener("pointerdown", (event) => {
  if (event.button !== 0 || !view) return;
  stopWatching();
  const { card, column } = under(event);
  if (card === undefined || card === null) {
    if (chosen !== null && column !== undefined) move(chosen, column);
    return;
  }
  event.preventDefault();
  board.root.setPointerCapture(event.pointerId);
  drag = { card, column, x: event.clientX, y: event.clientY, moved: false, pointer: event.pointerId };
});

board.root.addEventListener("pointermove", (event) => {
  if (!drag || event.pointerId !== drag.pointer) return;
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.moved) {
    if (Math.hypot(dx, dy) < TAP_DISTANCE) return;
    drag.moved = true;
    letGo();
    drag.group = board.group(drag.card);
    for (const element of drag.group) element.classList.add("dragging");
    if (view.options.placement_help) light(drag.card);
  }
  drag.group.forEach((element, i) => {
    element.style.transform = `translate(${element.x + dx}px, ${element.y + dy}px)`;
    element.style.zIndex = 100 + i;
  });
  for (const element of board.root.querySelectorAll(".over")) element.classList.remove("over");
  const to = board.destinationAt(event.clientX, event.clientY);
  if (to !== null && view.options.placement_help && destinations(drag.card).includes(to)) {
    target(drag.card, to).classList.add("over");
  }
});

board.root.addEventListener("pointerup", async (event) => {
  if (!drag || event.pointerId !== drag.pointer) return;
  const { card, column, moved, group } = drag;
  drag = null;
  if (!moved) return tap(card, column);
  const to = board.destinationAt(event.clientX, event.clientY);
  for (const element of group) element.classList.remove("dragging", "still");
  dark();
  const fits = to !== null && to !== column && destinations(card).includes(to);
  if (view.options.auto_placement && !fits) await act("place", { card });
  else if (to !== null && to !== column) await move(card, to);
  board.show(view); // what was not moved goes back to where it lay
});

board.root.addEventListener("pointercancel", () => {
  if (!drag) return;
  for (const element of drag.group ?? []) element.classList.remove("dragging");
  drag = null;
  dark();
  board.show(view);
});

function tap(card, column) {
  const now = performance.now();
  const twice = lastTap.card === card && now - lastTap.time < DOUBLE_TAP;
  // The second tap of a double tap on a card that the first one sent away means nothing.
  if (lastTap.sent && now - lastTap.time < DOUBLE_TAP) return;
  lastTap = { card, time: twice ? 0 : now, sent: false };
  focus = { column, index: column === FOUNDATION ? Math.floor(card / 13) : view.columns[column].indexOf(card) };
  if (twice && view.options.double_click) return act("place", { card });
  if (chosen !== null && Number(board.card(chosen).dataset.column) !== column) return move(chosen, column);
  if (chosen === card) return letGo();
  if (column !== FOUNDATION && destinations(card).includes(FOUNDATION)) {
    lastTap.sent = true;
    return move(card, FOUNDATION);
  }
  choose(card);
}

// ---- the keyboard ----------------------------------------------------------------------------------------------

function focused() {
  if (focus.column === FOUNDATION) {
    const suit = Math.max(0, Math.min(3, focus.index));
    const count = view.foundations[suit];
    return count ? suit * 13 + count - 1 : null;
  }
  const column = view.columns[focus.column];
  const first = column.findIndex((card) => card !== null);
  if (first < 0) return null;
  const index = focus.index < 0 ? column.length - 1 : Math.max(first, Math.min(focus.index, column.length - 1));
  focus.index = index;
  return column[index];
}

// One element of the table can be reached with Tab; the arrows go on from there.
function showFocus() {
  const had = board.root.contains(document.activeElement);
  for (const element of board.root.querySelectorAll("[tabindex]")) element.removeAttribute("tabindex");
  const card = focused();
  const place = focus.column === FOUNDATION ? FOUNDATION + Math.max(0, focus.index) : focus.column;
  const element = card === null ? board.wells[place] : board.card(card);
  element.tabIndex = 0;
  if (had) element.focus({ preventScroll: true });
  return element;
}

function step(dx, dy) {
  if (dx) focus = { column: (focus.column + dx + FOUNDATION + 1) % (FOUNDATION + 1), index: dx && -1 };
  if (focus.column === FOUNDATION) focus.index = Math.max(0, Math.min(3, focus.index + dy));
  else if (dy) {
    focused();
    focus.index = Math.max(0, focus.index + dy);
  }
  showFocus().focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (!view || document.querySelector("dialog[open]") || event.altKey || event.metaKey) return;
  if (event.ctrlKey && event.key !== "z") return;
  const typing = event.target.matches("input, select, button, a");
  const onTable = board.root.contains(event.target) || event.target === document.body;
  const card = chosen ?? focused();
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (typing && !/^[a-z1-7?]$/.test(key) && !event.ctrlKey) return;
  if (event.target.matches("input, select")) return;
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  if (arrows[key] && onTable) step(...arrows[key]);
  else if ((key === "Enter" || key === " ") && onTable) {
    if (chosen === null) card !== null && choose(card);
    else if (focused() === chosen) letGo();
    else move(chosen, focus.column);
  } else if (/^[1-7]$/.test(key)) card !== null && move(card, Number(key) - 1);
  else if (key === "f") card !== null && move(card, FOUNDATION);
  else if (key === "d") card !== null && act("place", { card });
  else if (key === "u" || key === "z") view.undo && act("undo");
  else if (key === "h") $("hint").click();
  else if (key === "w") $("watch").click();
  else if (key === "n") openNew();
  else if (key === "?") $("help").showModal();
  else if (key === "Escape") letGo();
  else return;
  event.preventDefault();
});

// ---- the bar and the dialogs -----------------------------------------------------------------------------------

$("undo").addEventListener("click", () => act("undo"));

$("hint").addEventListener("click", async () => {
  const by = $("policy").value;
  const patience = setTimeout(() => say("One moment…"), 400);
  const answer = await call("hint", { by });
  clearTimeout(patience);
  if (answer.sentence) say(answer.sentence);
  if (answer.hint) {
    letGo();
    const [card, to] = answer.hint;
    for (const element of board.group(card)) element.classList.add("hinted");
    target(card, to).classList.add("hinted");
  }
});

function stopWatching() {
  clearTimeout(watching);
  watching = null;
  $("watch").textContent = "Watch";
}

async function watch() {
  const policy = $("policy").value;
  const answer = await act("watch", { policy });
  if (!answer.ok || answer.sentence || view.won || view.stuck) return stopWatching();
  if (watching !== null) watching = setTimeout(watch, WATCH_PAUSE);
}

$("watch").addEventListener("click", () => {
  if (watching !== null) return stopWatching();
  $("watch").textContent = "Stop";
  watching = 0;
  watch();
});

$("share").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(view.code);
    say(`${view.code} is copied.`);
  } catch {
    say(`The code of this deal is ${view.code}.`);
  }
});

function openNew() {
  stopWatching();
  if (!$("variants").childElementCount) {
    $("variants").append(
      ...view.variants.map((name) => {
        const label = document.createElement("label");
        const radio = Object.assign(document.createElement("input"), { type: "radio", name: "rules", value: name });
        label.append(radio, name[0].toUpperCase() + name.slice(1));
        return label;
      }),
    );
  }
  for (const radio of document.querySelectorAll("#variants input")) radio.checked = radio.value === view.rules;
  $("code-input").value = "";
  $("code-problem").textContent = "";
  $("new-dialog").showModal();
}

$("new").addEventListener("click", openNew);
$("again").addEventListener("click", openNew);
$("options-open").addEventListener("click", () => $("options").showModal());
$("help-open").addEventListener("click", () => {
  $("options").close();
  $("help").showModal();
});
for (const button of document.querySelectorAll("[data-close]")) {
  button.addEventListener("click", () => button.closest("dialog").close());
}

$("deal").addEventListener("click", async (event) => {
  event.preventDefault();
  const code = $("code-input").value.trim();
  const rules = document.querySelector("#variants input:checked")?.value;
  const answer = await call("new", code ? { code } : { rules });
  if (answer.ok) {
    focus = { column: 0, index: -1 };
    $("new-dialog").close();
    announce(`A new game, ${view.rules}, ${view.code}`);
  } else $("code-problem").textContent = answer.sentence;
});

$("options").addEventListener("change", (event) => call("options", { [event.target.name]: event.target.checked }));

// ---- time and other windows ------------------------------------------------------------------------------------

setInterval(() => {
  if (!view || view.won || document.hidden || (view.moves === 0 && !drag)) return;
  seconds += 0.5;
  showTime();
}, 500);

addEventListener("pagehide", () => {
  if (!view || seconds <= view.seconds) return;
  const body = JSON.stringify({ seconds });
  fetch("api/tick", { method: "POST", headers: { "Content-Type": "application/json" }, body, keepalive: true });
});

tabs.onmessage = () => refresh();
document.addEventListener("visibilitychange", () => document.hidden || refresh());

refresh();
