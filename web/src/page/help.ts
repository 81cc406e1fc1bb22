// Keys, gamepad and touch, explained over the arena: until its button or H is pressed again.

import { element, onPress } from "./dom";

export class Help {
  private readonly card = element("help");
  private readonly button = element("open-help", "button");

  constructor() {
    onPress(this.button, () => this.toggle());
    onPress(element("help-close", "button"), () => this.toggle(false));
  }

  toggle(shown = this.card.hidden): void {
    this.card.hidden = !shown;
    this.button.setAttribute("aria-expanded", String(shown));
  }
}
