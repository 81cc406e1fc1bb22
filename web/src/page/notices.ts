// The banner, which says what goes on with the connection, and the badge, which says how it is made.

import { element, write } from "./dom";

const NAMES = { webtransport: "WebTransport", websocket: "WebSocket" } as const;
/** Milliseconds. */
const QUICK = 2_500;

export class Notices {
  private readonly banner = element("banner");
  private readonly badge = element("badge", "span");
  private lasting = "";
  private quickUntil = 0;

  /** Stays until it is taken back with nothing. */
  say(text: string): void {
    this.lasting = text;
    this.show();
  }

  /** For a moment. */
  mention(text: string): void {
    this.quickUntil = performance.now() + QUICK;
    this.show(text);
    setTimeout(() => this.show(), QUICK + 20);
  }

  transport(kind: keyof typeof NAMES | undefined, why: string): void {
    this.badge.dataset.way = kind ?? "";
    write(element("badge-kind", "span"), kind ? NAMES[kind] : "no link");
    write(element("badge-why", "span"), why);
  }

  private show(quick = ""): void {
    if (!quick && !this.lasting && performance.now() < this.quickUntil) return;
    const text = quick || this.lasting;
    this.banner.hidden = text === "";
    this.banner.classList.toggle("quick", quick !== "");
    write(this.banner, text);
  }
}
