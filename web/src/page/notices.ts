// The banner says how the connection is; the badge says by which kind of link.

import { element, write } from "./dom";

const NAMES = { webtransport: "WebTransport", websocket: "WebSocket" } as const;
const MEANINGS = {
  webtransport: "You play by WebTransport:",
  websocket: "You play by WebSocket: a lost packet holds back all that follow. WebTransport is not in use:",
} as const;
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

  /** `why` is the client's reason for this kind of link, or for none. */
  transport(kind: keyof typeof NAMES | undefined, why: string): void {
    this.badge.dataset.way = kind ?? "";
    write(element("badge-kind", "span"), kind ? NAMES[kind] : "no link");
    write(element("badge-why", "span"), kind ? `${MEANINGS[kind]} ${sentence(why)}` : why);
  }

  private show(quick = ""): void {
    if (!quick && !this.lasting && performance.now() < this.quickUntil) return;
    const text = quick || this.lasting;
    this.banner.hidden = text === "";
    this.banner.classList.toggle("quick", quick !== "");
    write(this.banner, text);
  }
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`;
}
