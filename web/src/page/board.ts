// The score board: while Tab is held, or until its button is pressed again.

import type { Standing } from "../client";
import { isMachine } from "../fighter";
import { element, make, onPress, write } from "./dom";
import { nameOf, swatch } from "./swatch";

/** Milliseconds from one look at the scores to the next. */
const EVERY = 500;
/** So many are shown, and oneself. */
const BEST = 12;

export class Board {
  private readonly board = element("board");
  private readonly button = element("open-board", "button");
  private looked = -Infinity;

  constructor(private readonly fighters: () => Standing[]) {
    onPress(this.button, () => this.toggle(this.isHidden));
  }

  get isHidden(): boolean {
    return this.board.hidden !== false;
  }

  toggle(shown: boolean): void {
    this.board.hidden = !shown;
    this.button.setAttribute("aria-expanded", String(shown));
    this.looked = -Infinity;
  }

  frame(now: number): void {
    if (this.board.hidden || now - this.looked < EVERY) return;
    this.looked = now;
    const fighters = this.fighters().sort((one, other) => other.kills - one.kills || one.deaths - other.deaths);
    const shown = fighters.map((standing, index) => ({ standing, rank: index + 1 }));
    const rows = shown.filter(({ standing, rank }) => rank <= BEST || standing.own);
    element("board-rows", "tbody").replaceChildren(...rows.map(({ standing, rank }) => row(standing, rank)));
    const machines = fighters.filter(({ fighter }) => isMachine(fighter)).length;
    const counts = [count(fighters.length - machines, "player"), ...(machines > 0 ? [count(machines, "machine")] : [])];
    write(element("board-note", "p"), `${counts.join(" and ")} in this room.`);
  }
}

function count(number: number, word: string): string {
  return number === 1 ? `1 ${word}` : `${number} ${word}s`;
}

function row({ fighter, name, own, kills, deaths, hp }: Standing, rank: number): HTMLElement {
  const cells = [kills, deaths, hp ?? "–"].map((value) => make("td", "", String(value)));
  const first = make("td", "", make("small", "", String(rank)), swatch(fighter, own), nameOf(fighter, name));
  return make("tr", own ? "own" : "", first, ...cells);
}
