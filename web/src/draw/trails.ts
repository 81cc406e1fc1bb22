// Where tracks leave marks. The ground keeps them, and lets them fade.

import type { Tank } from "../picture";
import type { Ground } from "./ground";

/** Metres from one mark to the next, and from the tank's middle to that of a track. */
const STEP = 0.34;
const TRACK = 0.86;
/** Half of a mark's length across the track. */
const HALF = 0.26;
/** Milliseconds: a tank that was not seen for so long has not driven here. */
const GONE = 500;

interface Last {
  x: number;
  y: number;
  seen: number;
}

export class Trails {
  private readonly last = new Map<number, Last>();

  constructor(private readonly ground: Ground) {}

  clear(): void {
    this.last.clear();
  }

  leave(tank: Tank, now: number): void {
    const last = this.last.get(tank.fighter);
    if (!last) {
      this.last.set(tank.fighter, { x: tank.x, y: tank.y, seen: now });
      return;
    }
    const way = Math.hypot(tank.x - last.x, tank.y - last.y);
    const jumped = way > 6 * STEP || now - last.seen > GONE;
    last.seen = now;
    if (way < STEP) return;
    last.x = tank.x;
    last.y = tank.y;
    if (jumped) return;
    const [acrossX, acrossY] = [-Math.sin(tank.heading), Math.cos(tank.heading)];
    for (const side of [-TRACK, TRACK]) {
      this.ground.mark(tank.x + acrossX * side, tank.y + acrossY * side, acrossX * HALF, acrossY * HALF);
    }
  }
}
