// Births and ends of rockets, each shown once: at once when they are predicted, and not again when the server confirms them.

import type { GameEvent } from "./client";

export type RocketEvent = Extract<GameEvent, { type: "rocket" }>;
/** Launched; burst; or gone without having been there. */
export type Show = "launch" | "burst" | "fizzle";

export class Rockets {
  private readonly launched = new Set<number>();
  private readonly burst = new Set<number>();

  /** Another session, or events were missed. */
  clear(): void {
    this.launched.clear();
    this.burst.clear();
  }

  /** What is to be shown of it, if anything. */
  take({ id, life, certainty }: RocketEvent): Show | undefined {
    const { launched, burst } = this;
    if (life === "born") {
      if (certainty === "revoked") {
        launched.delete(id);
        return burst.delete(id) ? undefined : "fizzle";
      }
      if (launched.has(id)) return undefined;
      launched.add(id);
      return "launch";
    }
    if (certainty === "revoked") {
      // It flies on.
      burst.delete(id);
      return undefined;
    }
    const shown = burst.has(id);
    if (certainty === "predicted") burst.add(id);
    else {
      launched.delete(id);
      burst.delete(id);
    }
    return shown ? undefined : "burst";
  }
}
