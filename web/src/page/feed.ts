// The kill feed: the last kills, for some seconds. A screen reader would never come to an end of it, so it reads only the
// player's own kills and deaths, from another element.

import { colourOf } from "../draw/palette";
import { element, make, write } from "./dom";

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
  constructor(
    private readonly list = element("feed", "ol"),
    private readonly aloud = element("aloud", "p"),
  ) {}

  add(by: Named, target: Named): void {
    const line = make("li", by.own || target.own ? "own" : "");
    if (by.player === target.player) line.append(...named(target), make("span", "verb", "left in combat"));
    else line.append(...named(by), make("span", "verb", "destroyed"), ...named(target));
    this.list.append(line);
    if (target.own) this.say(by.own ? "You were destroyed." : `${by.name} destroyed you.`);
    else if (by.own) this.say(`You destroyed ${target.name}.`);
    while (this.list.children.length > MAX_LINES) this.list.firstElementChild?.remove();
    setTimeout(() => line.classList.add("gone"), SHOWN);
    setTimeout(() => line.remove(), SHOWN + FADES);
  }

  clear(): void {
    this.list.replaceChildren();
    write(this.aloud, "");
  }

  /** For screen readers. */
  say(text: string): void {
    write(this.aloud, text);
  }
}

function named(player: Named): [HTMLElement, string] {
  const swatch = make("i");
  swatch.style.background = colourOf(player.player, player.own);
  return [swatch, player.own ? "you" : player.name];
}
