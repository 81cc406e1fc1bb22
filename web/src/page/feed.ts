// Who destroyed whom, for a while.

import { colourOf } from "../draw/palette";
import { element, make } from "./dom";

const MAX_LINES = 5;
/** Milliseconds that a line is shown, and that it takes to fade. */
const SHOWN = 6_000;
const FADES = 700;

export interface Named {
  player: number;
  name: string;
  own: boolean;
}

export class Feed {
  constructor(private readonly list = element("feed", "ol")) {}

  add(by: Named, target: Named): void {
    const line = make("li", by.own || target.own ? "own" : "");
    if (by.player === target.player) line.append(...named(target), make("span", "verb", "left in combat"));
    else line.append(...named(by), make("span", "verb", "destroyed"), ...named(target));
    this.list.append(line);
    while (this.list.children.length > MAX_LINES) this.list.firstElementChild?.remove();
    setTimeout(() => line.classList.add("gone"), SHOWN);
    setTimeout(() => line.remove(), SHOWN + FADES);
  }

  clear(): void {
    this.list.replaceChildren();
  }
}

function named(player: Named): [HTMLElement, string] {
  const swatch = make("i");
  swatch.style.background = colourOf(player.player, player.own);
  return [swatch, player.own ? "you" : player.name];
}
