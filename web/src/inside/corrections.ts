// Corrections of the own tank: how many for each cause, and the newest ones.

import type { Correction, Diagnostics } from "../client";
import { make } from "../page/dom";
import { CAUSES } from "./plots";

const MAX_ROWS = 5;
export const NAMES = new Map(CAUSES.map(([cause, label]) => [cause, label]));

export class Corrections {
  private readonly counts = make("p", "counts");
  private readonly rows = make("tbody");
  private shown = "";

  constructor(parent: HTMLElement) {
    const head = ["Cause", "Size", "Tick", "Outcome"].map((title) => {
      const cell = make("th", "", title);
      cell.scope = "col";
      return cell;
    });
    const table = make("table", "number", make("thead", "", make("tr", "", ...head)), this.rows);
    parent.append(this.counts, table);
  }

  show(told: Diagnostics): void {
    const newest = told.recent.slice(-MAX_ROWS).reverse();
    const key = JSON.stringify([told.causes, newest[0]?.at_ms]);
    if (key === this.shown) return;
    this.shown = key;
    const counts = told.causes.filter(([cause, count]) => count > 0 || cause === "unexplained");
    this.counts.replaceChildren(
      ...counts.map(([cause, count]) => {
        const alarm = cause === "unexplained" ? (count > 0 ? " alarm" : " calm") : "";
        return make("span", `count${alarm}`, `${NAMES.get(cause) ?? cause} `, make("b", "number", String(count)));
      }),
    );
    const none = make("td", "quiet", "None so far: the server agreed with every prediction.");
    none.colSpan = 4;
    this.rows.replaceChildren(...(newest.length > 0 ? newest.map(row) : [make("tr", "", none)]));
  }
}

export function size({ distance, angle }: Correction): string {
  return distance >= 0.01 ? `${distance.toFixed(2)} m` : `${((angle * 180) / Math.PI).toFixed(1)}°`;
}

function row(correction: Correction): HTMLElement {
  const { cause, tick, outcome } = correction;
  const cells = [NAMES.get(cause) ?? cause, size(correction), String(tick), outcome].map((text) => make("td", "", text));
  return make("tr", cause === "unexplained" ? "alarm" : "", ...cells);
}
