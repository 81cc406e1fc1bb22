// The bodies that are predicted with the own tank: which there are, what became of rockets, and corrections of them.

import { BODY, FLAG, KIND } from "../client";
import type { Diagnostics, Game } from "../client";
import { make, write } from "../page/dom";
import { NAMES, size } from "./corrections";
import { term } from "./term";

const MAX_ROWS = 3;
const KINDS: readonly [kind: number, one: string, many: string][] = [
  [KIND.platform, "platform", "platforms"],
  [KIND.crate, "crate", "crates"],
  [KIND.rocket, "rocket", "rockets"],
];

export class Group {
  private readonly members = make("dd", "number", "–");
  private readonly rockets = make("dd", "number", "–");
  private readonly counts = make("p", "counts");
  private readonly rows = make("tbody");
  private shown = "";
  /** The newest corrections, oldest first: the client has those of the last moments only. */
  private kept: Diagnostics["group"]["recent"] = [];

  constructor(parent: HTMLElement) {
    this.members.id = "group-members";
    this.rockets.id = "group-rockets";
    this.counts.id = "group-causes";
    const fact = (label: string, value: HTMLElement) => {
      const [word, meaning] = term(label);
      return make("div", "", make("dt", "", word), value, ...(meaning ? [meaning] : []));
    };
    const head = ["Body", "Cause", "Size", "Outcome"].map((title) => {
      const cell = make("th", "", title);
      cell.scope = "col";
      return cell;
    });
    const table = make("table", "number", make("thead", "", make("tr", "", ...head)), this.rows);
    const facts = make("dl", "facts two", fact("predicted with you", this.members), fact("rockets", this.rockets));
    parent.append(facts, this.counts, table);
  }

  show({ group, rockets }: Diagnostics, game: Game): void {
    write(this.members, members(game));
    write(this.rockets, `${rockets.predicted} predicted, ${rockets.confirmed} confirmed, ${rockets.revoked} revoked`);
    const known = this.kept.at(-1)?.correction.at_ms ?? -Infinity;
    this.kept.push(...group.recent.filter(({ correction }) => correction.at_ms > known));
    this.kept = this.kept.slice(-MAX_ROWS);
    const newest = [...this.kept].reverse();
    const key = JSON.stringify([group.causes, newest[0]?.correction.at_ms]);
    if (key === this.shown) return;
    this.shown = key;
    const counts = group.causes.filter(([, count]) => count > 0);
    this.counts.hidden = counts.length === 0;
    this.counts.replaceChildren(
      ...counts.map(([cause, count]) => {
        const alarm = cause === "unexplained" ? " alarm" : "";
        return make("span", `count${alarm}`, `${NAMES.get(cause) ?? cause} `, make("b", "number", String(count)));
      }),
    );
    const none = make("td", "quiet", "None seen so far.");
    none.colSpan = 4;
    const rows = newest.map(({ kind, correction }) => {
      const words = [kind, NAMES.get(correction.cause) ?? correction.cause, size(correction), correction.outcome];
      return make("tr", "", ...words.map((text) => make("td", "", text)));
    });
    this.rows.replaceChildren(...(rows.length > 0 ? rows : [make("tr", "", none)]));
  }
}

/** "1 platform, 3 crates, 2 carried", or "nothing". */
function members(game: Game): string {
  const rows = [...game.bodies()].filter((row) => game.at(row + BODY.flags) & FLAG.predicted);
  const count = (holds: (row: number) => boolean) => rows.filter(holds).length;
  const parts = KINDS.map(([kind, one, many]) => {
    const those = count((row) => game.at(row + BODY.kind) === kind);
    return those > 0 && `${those} ${those === 1 ? one : many}`;
  });
  const carried = count((row) => game.at(row + BODY.carrier) >= 0);
  const late = count((row) => game.at(row + BODY.lag) > 0);
  return [...parts, carried > 0 && `${carried} carried`, late > 0 && `${late} drawn late`].filter(Boolean).join(", ") || "nothing";
}
