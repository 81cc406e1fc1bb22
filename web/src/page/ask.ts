// A question that has to be answered before something is lost.

import { element, write } from "./dom";

/** Resolves to whether the player agreed; Escape is a no. A new question answers the one before with no. */
export function ask(text: string, yes: string, no: string): Promise<boolean> {
  const dialog = element("ask", "dialog");
  dialog.close("no");
  write(element("ask-text", "p"), text);
  write(element("ask-yes", "button"), yes);
  write(element("ask-no", "button"), no);
  return new Promise((resolve) => {
    dialog.returnValue = "";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });
}
