// The round: the time that is left of it, its winner, and the break before the next one, in which the scores are shown.

import type { GameEvent, Standing } from "../client";
import { nameless } from "../fighter";
import type { Board } from "./board";
import { element, write } from "./dom";
import { clock, seconds } from "./words";

type RoundEvent = Extract<GameEvent, { type: "round" }>;

export class Round {
  private readonly left = element("round", "span");
  private readonly verdict = element("verdict", "p");
  private readonly next = element("verdict-next", "p");
  private on: RoundEvent | undefined;
  /** Whether the break has opened the board. */
  private opened = false;

  constructor(private readonly board: Board) {}

  /** `sayAloud` is for screen readers. */
  take(event: RoundEvent, fighters: readonly Standing[], sayAloud: (text: string) => void): void {
    this.on = event;
    write(this.verdict, event.over ? verdict(event, fighters) : "");
    this.verdict.hidden = this.next.hidden = !event.over;
    if (event.over) {
      sayAloud(verdict(event, fighters));
      this.opened ||= this.board.isHidden;
      this.board.toggle(true);
    } else if (this.opened) {
      this.opened = false;
      this.board.toggle(false);
    }
  }

  /** `serverTime` is in milliseconds, as `ends_ms` is. */
  frame(serverTime: number): void {
    const { on, left } = this;
    const shown = on !== undefined && Number.isFinite(serverTime);
    if (left.hidden === shown) left.hidden = !shown;
    if (!on || !shown) return;
    const ms = Math.max(0, on.ends_ms - serverTime);
    write(left, on.over ? "break" : clock(Math.ceil(ms / 1_000) * 1_000));
    left.title = on.over ? "The next round begins in a moment" : `Round ${on.number}: time left`;
    left.classList.toggle("alarm", !on.over && ms < 10_000);
    if (on.over) write(this.next, `The next round begins in ${seconds(ms)}.`);
  }

  clear(): void {
    this.on = undefined;
    this.left.hidden = this.verdict.hidden = this.next.hidden = true;
    this.opened = false;
  }
}

/** "Ada wins round 3 with 12 kills." */
function verdict({ number, winner }: RoundEvent, fighters: readonly Standing[]): string {
  if (winner === null) return `Round ${number} is a draw.`;
  const found = fighters.find(({ fighter }) => fighter === winner);
  if (!found) return `Round ${number} goes to ${nameless(winner)}.`;
  const kills = found.kills === 1 ? "1 kill" : `${found.kills} kills`;
  return found.own ? `You win round ${number} with ${kills}.` : `${found.name} wins round ${number} with ${kills}.`;
}
