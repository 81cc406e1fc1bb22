// Keys that are not for driving: scores, the inside view, help, sound, and the way between the arena and the menu.

import { belongsTo } from "../controls/keyboard";
import type { Inside } from "../inside/inside";
import type { Board } from "./board";
import { element } from "./dom";
import type { Help } from "./help";
import type { Sound } from "./sound";

export interface Parts {
  board: Board;
  inside: Inside;
  help: Help;
  sound: Sound;
}

export function listenForKeys(arena: HTMLElement, { board, inside, help, sound }: Parts, playing: () => boolean): void {
  const presses: Record<string, () => void> = {
    KeyI: () => inside.toggle(!inside.isOpen),
    KeyH: () => help.toggle(),
    KeyM: () => sound.toggle(),
  };
  addEventListener("keydown", (event) => {
    if (!playing() || event.ctrlKey || event.metaKey || event.altKey) return;
    // Tab shows the scores in the arena only, and moves the focus elsewhere. Escape leads out of the arena.
    if (event.code === "Tab" && !event.shiftKey && document.activeElement === arena) {
      event.preventDefault();
      if (!event.repeat) board.toggle(true);
    } else if (event.code === "Escape" && document.activeElement === arena) element("open-board", "button").focus();
    else if (event.code === "Escape") arena.focus();
    else if (!event.repeat && !belongsTo(event)) presses[event.code]?.();
  });
  addEventListener("keyup", (event) => {
    if (event.code === "Tab" && document.activeElement === arena) board.toggle(false);
  });
  addEventListener("blur", () => board.toggle(false));
}

/** A frame around the arena when it was reached by a key. */
export function showFocus(arena: HTMLElement): void {
  let by = "";
  addEventListener("keydown", (event) => (by = event.code), true);
  addEventListener("pointerdown", () => (by = ""), true);
  arena.addEventListener("focus", () => arena.classList.toggle("reached", by === "Tab" || by === "Escape"));
  for (const over of ["blur", "keydown", "pointerdown"]) {
    arena.addEventListener(over, () => arena.classList.remove("reached"));
  }
}
