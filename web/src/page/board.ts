// The score board: while Tab is held, or until its button is pressed again.

import type { Player } from "../client";
import { colourOf } from "../draw/palette";
import { element, make, onPress, write } from "./dom";

/** Milliseconds from one look at the scores to the next. */
const EVERY = 500;
/** So many are shown, and oneself. */
const BEST = 12;

export class Board {
  private readonly board = element("board");
  private readonly button = element("open-board", "button");
  private looked = -Infinity;

  constructor(private readonly players: () => Player[]) {
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
    const players = this.players().sort((one, other) => other.kills - one.kills || one.deaths - other.deaths);
    const shown = players.map((player, index) => ({ player, rank: index + 1 }));
    const rows = shown.filter(({ player, rank }) => rank <= BEST || player.own);
    element("board-rows", "tbody").replaceChildren(...rows.map(({ player, rank }) => row(player, rank)));
    const count = players.length === 1 ? "1 player" : `${players.length} players`;
    write(element("board-note", "p"), `${count} in this room.`);
  }
}

function row(player: Player, rank: number): HTMLElement {
  const swatch = make("i");
  swatch.style.background = colourOf(player.player, player.own);
  const cells = [player.kills, player.deaths, player.hp ?? "–"].map((value) => make("td", "", String(value)));
  return make("tr", player.own ? "own" : "", make("td", "", make("small", "", String(rank)), swatch, player.name), ...cells);
}
