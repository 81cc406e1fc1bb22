// A word of the panel that explains itself: on hover, on focus, and on tap, which gives it the focus.

import { make } from "../page/dom";
import { MEANINGS } from "./plans";

let count = 0;

/** The word, and its explanation to be placed beside it. Without one, the word is plain text. */
export function term(word: string): [word: HTMLElement, meaning?: HTMLElement] {
  const meaning = (MEANINGS as Record<string, string>)[word];
  if (!meaning) return [make("span", "", word)];
  const button = make("button", "term", word);
  button.type = "button";
  const bubble = make("span", "bubble", meaning);
  bubble.id = `meaning-${count++}`;
  bubble.role = "tooltip";
  button.setAttribute("aria-describedby", bubble.id);
  // Escape puts it away without taking the focus to the arena.
  button.addEventListener("keydown", (event) => {
    if (event.code !== "Escape" || !bubble.checkVisibility({ visibilityProperty: true })) return;
    event.stopPropagation();
    button.blur();
  });
  return [button, bubble];
}
