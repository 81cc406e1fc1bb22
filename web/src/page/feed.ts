// The kill feed: the last kills, for some seconds. A screen reader would never come to an end of it, so it reads only the
// player's own kills and deaths, from another element.

import { element, make, write } from "./dom";
import { nameOf, swatch } from "./swatch";

const MAX_LINES = 5;
/** Milliseconds that a line is shown, and that it takes to fade. */
const SHOWN = 6_000;
const FADES = 700;

export interface Named {
  fighter: number;
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
    if (by.fighter === target.fighter) line.append(...named(target), make("span", "verb", "left in combat"));
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

function named({ fighter, name, own }: Named): [HTMLElement, HTMLElement] {
  return [swatch(fighter, own), nameOf(fighter, own ? "you" : name)];
}
