// For tests and measurements: `window.__halftrack`. Nothing of the page depends on it.

import { memory } from "./client";
import type { Game, GameEvent, Site } from "./client";
import { colourOf } from "./draw/palette";
import type { Picture } from "./picture";
import type { Show } from "./watch/show";

const MAX_EVENTS = 1_000;
const MAX_FRAMES = 2_000;

export class Hooks {
  game: Game | undefined;
  site: Site | undefined;
  picture: Picture | undefined;
  /** The recording that is watched. */
  show: Show | undefined;
  /** Where a place of the arena is on the page. */
  onPage: ((x: number, y: number) => [x: number, y: number]) | undefined;
  /** How many things move on the screen for effect. */
  moving: (() => number) | undefined;
  /** Sounds that were played. */
  readonly sounds: string[] = [];
  readonly colourOf = colourOf;
  readonly events: GameEvent[] = [];
  /** Milliseconds from the start of the load to the first picture with an own tank in it that can be driven. */
  firstFrame: number | undefined;
  frames = 0;
  broken: string | undefined;
  /** Of the last frames: milliseconds since the one before, and that the page's script took. */
  readonly intervals: number[] = [];
  readonly work: number[] = [];

  get state(): string {
    return this.game?.state ?? "lobby";
  }

  get memory(): number {
    return memory();
  }

  frame(interval: number, work: number): void {
    this.frames += 1;
    this.intervals.push(interval);
    this.work.push(work);
    if (this.intervals.length > MAX_FRAMES) {
      this.intervals.shift();
      this.work.shift();
    }
  }

  sound(name: string): void {
    this.sounds.push(name);
    if (this.sounds.length > MAX_EVENTS) this.sounds.shift();
  }

  event(event: GameEvent): void {
    this.events.push(event);
    if (this.events.length > MAX_EVENTS) this.events.shift();
  }
}

declare global {
  interface Window {
    __halftrack?: Hooks;
  }
}
