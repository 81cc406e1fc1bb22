// Marks that tracks leave, and that fade.

import type { Tank } from "../picture";
import type { Camera } from "./camera";
import type { Palette } from "./palette";

/** Metres from one mark to the next, and between the two tracks' middles. */
const STEP = 0.34;
const GAUGE = 0.86;
/** Milliseconds until a mark is gone. */
const LASTS = 7_000;
/** Marks fade in so many steps: each step is one path, whatever it holds. */
const SHADES = 6;
const DARKEST = 0.42;
/** The oldest go when there are more. */
const MAX_MARKS = 8_000;
const SIZE = 5;

interface Last {
  x: number;
  y: number;
  seen: number;
}

export class Trails {
  /** Of each mark: x, y, half of its length along x and y, time. A ring. */
  private marks = new Float64Array(MAX_MARKS * SIZE);
  private count = 0;
  private next = 0;
  private last = new Map<number, Last>();

  clear(): void {
    this.count = this.next = 0;
    this.last.clear();
  }

  leave(tank: Tank, now: number): void {
    const last = this.last.get(tank.player);
    if (!last) {
      this.last.set(tank.player, { x: tank.x, y: tank.y, seen: now });
      return;
    }
    const [dx, dy] = [tank.x - last.x, tank.y - last.y];
    const way = Math.hypot(dx, dy);
    const jumped = way > 6 * STEP || now - last.seen > 500;
    last.seen = now;
    if (way < STEP) return;
    last.x = tank.x;
    last.y = tank.y;
    if (jumped) return;
    for (const side of [-GAUGE, GAUGE]) {
      const at = this.next * SIZE;
      // Across the track: a link's print.
      this.marks[at] = tank.x - Math.sin(tank.heading) * side;
      this.marks[at + 1] = tank.y + Math.cos(tank.heading) * side;
      this.marks[at + 2] = -Math.sin(tank.heading) * 0.26;
      this.marks[at + 3] = Math.cos(tank.heading) * 0.26;
      this.marks[at + 4] = now;
      this.next = (this.next + 1) % MAX_MARKS;
      this.count = Math.min(MAX_MARKS, this.count + 1);
    }
  }

  draw(context: CanvasRenderingContext2D, camera: Camera, palette: Palette, now: number): void {
    context.lineWidth = 0.17 * camera.scale;
    context.lineCap = "butt";
    // From the newest on backwards, so that one pass meets every age in order.
    let index = 0;
    for (let shade = 0; shade < SHADES && index < this.count; shade++) {
      const until = ((shade + 1) / SHADES) * LASTS;
      context.beginPath();
      for (; index < this.count; index++) {
        const at = ((this.next - 1 - index + 2 * MAX_MARKS) % MAX_MARKS) * SIZE;
        if (now - (this.marks[at + 4] ?? 0) > until) break;
        const [x, y] = [this.marks[at] ?? 0, this.marks[at + 1] ?? 0];
        if (!camera.sees(x, y, 1)) continue;
        const [dx, dy] = [this.marks[at + 2] ?? 0, this.marks[at + 3] ?? 0];
        context.moveTo(camera.toCanvasX(x - dx), camera.toCanvasY(y - dy));
        context.lineTo(camera.toCanvasX(x + dx), camera.toCanvasY(y + dy));
      }
      context.strokeStyle = `rgb(${palette.track} / ${DARKEST * (1 - shade / SHADES)})`;
      context.stroke();
    }
    this.count = Math.min(this.count, index);
  }
}
