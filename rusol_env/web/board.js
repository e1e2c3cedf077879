// The board: draws a position and nothing more. It knows no rule; play.js and replay.js tell it what to show.

const SVG = "http://www.w3.org/2000/svg";
const COLUMNS = 7;
const CARD_WIDTH = 100, CARD_HEIGHT = 140, INDEX_STRIP = 35, DOWN_STRIP = 12;
const RANKS = ["ace", "2", "3", "4", "5", "6", "7", "8", "9", "10", "jack", "queen", "king"];
const SUITS = ["spades", "hearts", "diamonds", "clubs"];

export const FOUNDATION = COLUMNS;

export function cardName(card) {
  return `${RANKS[card % 13]} of ${SUITS[Math.floor(card / 13)]}`;
}

function drawing(...names) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${CARD_WIDTH} ${CARD_HEIGHT}`);
  svg.setAttribute("aria-hidden", "true");
  for (const [name, scale] of names) {
    const use = document.createElementNS(SVG, "use");
    use.setAttribute("href", `#${name}`);
    use.setAttribute("width", CARD_WIDTH);
    use.setAttribute("height", CARD_HEIGHT);
    // A small pip stays at the right edge.
    const x = name.startsWith("pip") ? CARD_WIDTH * (1 - scale) : 0;
    if (scale !== 1) use.setAttribute("transform", `translate(${x} 0) scale(${scale})`);
    svg.append(use);
  }
  return svg;
}

export class Board {
  constructor(root) {
    this.root = root;
    root.classList.add("board");
    this.cards = new Map(); // key -> element
    this.wells = [];
    for (let place = 0; place < COLUMNS + SUITS.length; place++) {
      const well = document.createElement("div");
      well.className = "well";
      well.dataset.place = place;
      well.append(drawing([place < COLUMNS ? "well" : `well-${place - COLUMNS}`, 1]));
      root.append(well);
      this.wells.push(well);
    }
    this.frame = document.createElement("div");
    this.frame.className = "last-move";
    root.append(this.frame);
    new ResizeObserver(() => this.view && this.show(this.view)).observe(root);
  }

  // The size of a card and where the columns stand, from the size of the element.
  measure() {
    const width = this.root.clientWidth, height = this.root.clientHeight;
    const margin = Math.max(8, width * 0.02);
    const wide = (width - 2 * margin) / (COLUMNS + 1 + 0.16 * (COLUMNS + 1));
    const high = (height - 2 * margin) / (SUITS.length + 0.12 * (SUITS.length - 1)) / 1.4;
    this.scale = Math.min(wide, high, 150) / CARD_WIDTH;
    const card = this.scale * CARD_WIDTH;
    const gap = Math.min((width - 2 * margin - (COLUMNS + 1) * card) / (COLUMNS + 1), 0.42 * card);
    const used = (COLUMNS + 1) * card + (COLUMNS + 1) * gap;
    this.left = (width - used) / 2;
    this.step = card + gap;
    this.top = margin;
    this.room = height - 2 * margin;
    this.foundationX = this.left + used - card;
  }

  // How far below its column's top each card lies: face-down cards show less, and what does not fit is squeezed.
  fan(column, revealed) {
    const strip = (card) => (card === null && !revealed ? DOWN_STRIP : INDEX_STRIP);
    const strips = column.slice(0, -1).map((card) => this.scale * strip(card));
    const sum = strips.reduce((a, b) => a + b, 0);
    const squeeze = Math.min(1, (this.room - this.scale * CARD_HEIGHT) / (sum || 1));
    let offset = 0;
    const offsets = [0];
    for (const strip of strips) offsets.push((offset += strip * squeeze));
    return { offsets: offsets.slice(0, column.length), squeeze };
  }

  place(element, x, y, z) {
    element.style.width = `${this.scale * CARD_WIDTH}px`;
    element.style.height = `${this.scale * CARD_HEIGHT}px`;
    element.style.transform = `translate(${x}px, ${y}px)`;
    element.style.zIndex = z;
    element.x = x;
    element.y = y;
  }

  put(key, names, x, y, z) {
    let element = this.cards.get(key);
    if (!element) {
      element = document.createElement("div");
      element.className = "card";
      // It appears where it lies, and moves from then on.
      element.classList.add("still");
      this.cards.set(key, element);
      this.root.append(element);
    }
    const drawn = names.map(([name, scale]) => `${name}@${scale}`).join();
    if (element.drawn !== drawn) {
      element.replaceChildren(drawing(...names));
      element.drawn = drawn;
    }
    if (element.x !== undefined && (element.x !== x || element.y !== y)) element.classList.remove("still");
    this.place(element, x, y, z);
    this.seen.add(key);
    return element;
  }

  // Show a position: columns (null is a face-down card), foundations and the last move. `hidden`, where given, has
  // the cards that lie face down, and they are shown as such.
  show(view) {
    this.view = view;
    this.measure();
    this.seen = new Set();
    const spot = new Map();
    for (let place = 0; place < this.wells.length; place++) {
      const column = place < COLUMNS;
      const x = column ? this.left + place * this.step : this.foundationX;
      const y = column ? this.top : this.foundationY(place - COLUMNS);
      this.place(this.wells[place], x, y, 0);
      const label = column
        ? `Column ${place + 1}, ${view.columns[place].length ? "" : "empty"}`
        : `Foundation of ${SUITS[place - COLUMNS]}, ${view.foundations[place - COLUMNS]} cards`;
      const empty = column ? !view.columns[place].length : !view.foundations[place - COLUMNS];
      this.wells[place].setAttribute("aria-label", label);
      this.wells[place].setAttribute("role", "button");
      this.wells[place].setAttribute("aria-hidden", !empty);
    }
    view.columns.forEach((column, k) => {
      const { offsets, squeeze } = this.fan(column, Boolean(view.hidden));
      const x = this.left + k * this.step;
      column.forEach((card, i) => {
        const y = this.top + offsets[i];
        const last = i === column.length - 1;
        const scale = Math.max(0.2, Math.min(1, Math.round(squeeze * 10) / 10));
        const hidden = card === null && view.hidden ? view.hidden[k][i] : null;
        let names;
        if (card === null && hidden === null) names = [["back", 1]];
        else if (last || scale === 1) names = [[`front-${card ?? hidden}`, 1]];
        else names = [["blank", 1], [`rank-${card ?? hidden}`, scale], [`pip-${card ?? hidden}`, scale]];
        const element = this.put(card === null ? `down-${k}-${i}` : `card-${card}`, names, x, y, 1 + i);
        element.classList.toggle("down", card === null);
        element.classList.toggle("revealed", hidden !== null);
        element.dataset.column = k;
        element.dataset.card = card ?? "";
        element.dataset.index = i;
        element.dataset.group = card === null ? 0 : column.length - i;
        element.setAttribute("role", card === null ? "img" : "button");
        const of = `column ${k + 1}, card ${i + 1} of ${column.length}`;
        element.setAttribute("aria-label", card === null ? `Face-down card, ${of}` : `${cardName(card)}, ${of}`);
        if (card !== null) spot.set(`${card}-${k}`, [x, y, offsets[column.length - 1] - offsets[i]]);
      });
    });
    view.foundations.forEach((count, suit) => {
      // The card under the top one lies there too, for while the top one is being dragged.
      for (const rank of [count - 2, count - 1]) {
        if (rank < 0) continue;
        const card = suit * 13 + rank;
        const y = this.foundationY(suit);
        const element = this.put(`card-${card}`, [[`front-${card}`, 1]], this.foundationX, y, 1 + rank);
        element.classList.remove("down", "revealed");
        element.dataset.column = FOUNDATION;
        element.dataset.card = rank === count - 1 ? card : "";
        element.dataset.index = rank;
        element.dataset.group = 1;
        element.setAttribute("role", "button");
        element.setAttribute("aria-label", `${cardName(card)}, on its foundation`);
        spot.set(`${card}-${FOUNDATION}`, [this.foundationX, y, 0]);
      }
    });
    for (const [key, element] of this.cards) {
      if (!this.seen.has(key)) {
        element.remove();
        this.cards.delete(key);
      }
    }
    const marked = view.last && spot.get(`${view.last.card}-${view.last.to}`);
    this.frame.hidden = !marked;
    if (marked) {
      const [x, y, tall] = marked;
      this.place(this.frame, x, y, 60);
      this.frame.style.height = `${tall + this.scale * CARD_HEIGHT}px`;
    }
  }

  foundationY(suit) {
    const card = this.scale * CARD_HEIGHT;
    const gap = Math.min((this.room - SUITS.length * card) / (SUITS.length - 1), 0.3 * card);
    return this.top + suit * (card + gap);
  }

  card(id) {
    return this.cards.get(`card-${id}`);
  }

  // The elements that move with a card: itself and all that lies on it.
  group(id) {
    for (const column of this.view.columns) {
      const at = column.indexOf(id);
      if (at >= 0) return column.slice(at).map((card) => this.card(card));
    }
    return this.card(id) ? [this.card(id)] : [];
  }

  // The column (or FOUNDATION) that a card let go at this point of the window would lie on; null: none.
  destinationAt(x, y) {
    const box = this.root.getBoundingClientRect();
    const card = this.scale * CARD_WIDTH;
    const right = x - box.left;
    if (y < box.top || y > box.bottom || right < 0 || right > box.width) return null;
    if (right >= this.foundationX - (this.step - card) / 2) return FOUNDATION;
    const column = Math.floor((right - this.left + (this.step - card) / 2) / this.step);
    return column >= 0 && column < COLUMNS ? column : null;
  }
}
