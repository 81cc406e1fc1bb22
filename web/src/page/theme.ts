// Dark or light: as the system wishes, until the player says otherwise.

import type { Theme } from "../draw/palette";
import { keep, recall } from "./kept";

const system = matchMedia("(prefers-color-scheme: light)");

export class Themes {
  private readonly listeners: ((theme: Theme) => void)[] = [];
  private chosen = asTheme(recall("theme"));

  constructor() {
    this.apply();
    system.addEventListener("change", () => this.apply());
    for (const button of document.querySelectorAll<HTMLElement>("button.theme")) {
      button.addEventListener("click", () => {
        this.chosen = this.current === "dark" ? "light" : "dark";
        keep("theme", this.chosen);
        this.apply();
      });
    }
  }

  get current(): Theme {
    return this.chosen ?? (system.matches ? "light" : "dark");
  }

  onChange(listener: (theme: Theme) => void): void {
    this.listeners.push(listener);
  }

  private apply(): void {
    document.documentElement.dataset.theme = this.current;
    for (const listener of this.listeners) listener(this.current);
  }
}

function asTheme(text: string | undefined): Theme | undefined {
  return text === "dark" || text === "light" ? text : undefined;
}
