// A fighter in a list: its colour, square for a player and a hexagon for a machine, and its name.

import { colourOf } from "../draw/palette";
import { isMachine } from "../fighter";
import { make } from "./dom";

export function swatch(fighter: number, own: boolean): HTMLElement {
  const colour = make("i", isMachine(fighter) ? "colour machine" : "colour");
  colour.style.background = colourOf(fighter, own);
  return colour;
}

/** `title` says so to a pointer, and hidden words to a screen reader. */
export function nameOf(fighter: number, name: string): HTMLElement {
  if (!isMachine(fighter)) return make("span", "name", name);
  const element = make("span", "name machine", name, make("span", "unseen", " (machine)"));
  element.title = "A machine: the server drives it";
  return element;
}
