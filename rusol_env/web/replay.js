// The replay of one game: the page has it all inside, and asks nobody.

import { Board } from "./board.js";

const $ = (id) => document.getElementById(id);
const data = JSON.parse($("data").textContent);
const board = new Board($("board"));
const PAUSE = 700;
let at = 0;
let playing = null;
let revealed = false;

function element(tag, className, text) {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

function time(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

function go(step) {
  at = Math.max(0, Math.min(data.positions.length - 1, step));
  const position = data.positions[at];
  board.show({ ...position, hidden: revealed ? position.hidden : null });
  $("score").textContent = position.score;
  $("moves-made").textContent = position.moves;
  $("slider").value = at;
  $("where").textContent = `${at} of ${data.positions.length - 1}`;
  $("where").title = data.steps[at - 1]?.text ?? "";
  for (const item of $("list").querySelectorAll("[aria-current]")) item.removeAttribute("aria-current");
  const item = $("list").children[at];
  item.setAttribute("aria-current", "step");
  item.scrollIntoView({ block: "nearest" });
  showShares();
  if (at === data.positions.length - 1) stop();
}

// The probabilities of the move that comes next.
function showShares() {
  const shares = data.steps[at]?.probabilities;
  $("shares").hidden = !shares;
  if (!shares) return;
  $("share-list").replaceChildren(
    ...shares.flatMap(([text, share, played]) => [
      element(played ? "b" : "span", "", text),
      Object.assign(document.createElement("meter"), { value: share, ariaLabel: text }),
      element("span", "", `${(100 * share).toFixed(1)} %`),
    ]),
  );
}

function stop() {
  clearInterval(playing);
  playing = null;
  $("play").textContent = "Play";
}

function toggle() {
  if (playing !== null) return stop();
  if (at === data.positions.length - 1) go(0);
  $("play").textContent = "Pause";
  playing = setInterval(() => go(at + 1), PAUSE);
}

function press(button, on) {
  button.setAttribute("aria-pressed", on);
}

function reveal() {
  revealed = !revealed;
  press($("reveal"), revealed);
  $("reveal").textContent = revealed ? "Hide hidden cards" : "Show hidden cards";
  go(at);
}

function colours() {
  press($("colours"), document.body.classList.toggle("four-colours"));
}

function row(step, number) {
  const item = element("li", "", "");
  item.append(element("span", "number", number), element("span", "", step.text));
  if (step.seconds !== undefined) item.append(element("span", "time", time(step.seconds)));
  if (step.verdict) item.append(element("span", `verdict ${step.verdict}`, step.verdict));
  if (step.mistake) item.classList.add("mistake");
  item.addEventListener("click", () => {
    stop();
    go(number);
  });
  return item;
}

document.title = `Russian Solitaire ${data.code ?? ""}: a replay`;
$("rules").textContent = data.rules[0].toUpperCase() + data.rules.slice(1);
$("code").textContent = data.code ?? "none";
$("player").textContent = data.player;
$("slider").max = data.positions.length - 1;
$("list").append(row({ text: "the deal", verdict: data.verdict }, 0), ...data.steps.map((step, i) => row(step, i + 1)));
$("analysis").append(...data.analysis.map((sentence) => element("p", "", sentence)));
$("analysis").hidden = data.analysis.length === 0;

const actions = {
  first: () => go(0), back: () => go(at - 1), next: () => go(at + 1), end: () => go(data.positions.length - 1),
};
for (const [id, action] of Object.entries(actions)) {
  $(id).addEventListener("click", () => {
    stop();
    action();
  });
}
$("play").addEventListener("click", toggle);
$("reveal").addEventListener("click", reveal);
$("colours").addEventListener("click", colours);
$("slider").addEventListener("input", () => {
  stop();
  go(Number($("slider").value));
});
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const keys = {
    ArrowLeft: actions.back, ArrowRight: actions.next, Home: actions.first, End: actions.end,
    " ": toggle, r: reveal, c: colours,
  };
  const action = keys[event.key];
  if (!action || (event.key === " " && event.target.matches("button"))) return;
  if (event.key !== " " && playing !== null && event.key.length > 1) stop();
  action();
  event.preventDefault();
});
go(0);
