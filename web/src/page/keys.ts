// Keys that are not for driving: scores, the inside view, and the way between the arena and the menu.

import { belongsTo } from "../controls/keyboard";
import type { Inside } from "../inside/inside";
import type { Board } from "./board";
import { element } from "./dom";

export function listenForKeys(arena: HTMLElement, board: Board, inside: Inside, playing: () => boolean): void {
  addEventListener("keydown", (event) => {
    if (!playing() || event.ctrlKey || event.metaKey || event.altKey) return;
    // Tab stays what it is everywhere but in the arena itself; Escape leads out of it.
    if (event.code === "Tab" && !event.shiftKey && document.activeElement === arena) {
      event.preventDefault();
      if (!event.repeat) board.toggle(true);
    } else if (event.code === "Escape" && document.activeElement === arena) element("open-board", "button").focus();
    else if (event.code === "Escape") arena.focus();
    else if (event.code === "KeyI" && !event.repeat && !belongsTo(event)) inside.toggle(!inside.isOpen);
  });
  addEventListener("keyup", (event) => {
    if (event.code === "Tab" && document.activeElement === arena) board.toggle(false);
  });
  addEventListener("blur", () => board.toggle(false));
}

/** A frame around the arena for whoever comes to it by a key; whoever plays knows. */
export function showFocus(arena: HTMLElement): void {
  let by = "";
  addEventListener("keydown", (event) => (by = event.code), true);
  addEventListener("pointerdown", () => (by = ""), true);
  arena.addEventListener("focus", () => arena.classList.toggle("reached", by === "Tab" || by === "Escape"));
  for (const over of ["blur", "keydown", "pointerdown"]) {
    arena.addEventListener(over, () => arena.classList.remove("reached"));
  }
}
