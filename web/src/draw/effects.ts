// Short effects: flashes, tracers, sparks, smoke, rings, numbers. Nothing here decides anything. Under reduced motion only
// tracers, numbers and arcs are left, and they stand still.

import { wantsLessMotion } from "../page/motion";
import type { Camera } from "./camera";
import type { Palette } from "./palette";
import type { Sprites } from "./sprites";

const MAX_BITS = 700;
/** Milliseconds. */
const TRACER = 170;
const NUMBER = 900;
const BLOW = 1_100;

type Kind = "spark" | "smoke" | "fire" | "debris";
interface Bit {
  kind: Kind;
  x: number;
  y: number;
  dx: number;
  dy: number;
  size: number;
  born: number;
  lasts: number;
}
interface Tracer {
  fromX: number;
  fromY: number;
  toX: number;
  toY: number;
  born: number;
}
interface Ring {
  x: number;
  y: number;
  colour: string;
  reach: number;
  born: number;
  lasts: number;
}
interface Blow {
  angle: number;
  born: number;
}
interface Floating {
  x: number;
  y: number;
  text: string;
  colour: string;
  born: number;
}

export class Effects {
  private bits: Bit[] = [];
  private tracers: Tracer[] = [];
  private rings: Ring[] = [];
  private numbers: Floating[] = [];
  private blows: Blow[] = [];

  /** How many things move on the screen now. */
  get moving(): number {
    return this.bits.length + this.rings.length;
  }

  clear(): void {
    this.bits = [];
    this.tracers = [];
    this.rings = [];
    this.numbers = [];
    this.blows = [];
  }

  /** The own tank was hit from there: radians to the left of east. */
  blow(angle: number, now: number): void {
    this.blows.push({ angle, born: now });
  }

  /** Arcs around the own tank, on the side that the blows came from. */
  drawBlows(context: CanvasRenderingContext2D, camera: Camera, x: number, y: number, palette: Palette, now: number): void {
    this.blows = this.blows.filter((blow) => now - blow.born < BLOW);
    context.lineCap = "round";
    context.strokeStyle = palette.bad;
    context.lineWidth = 0.4 * camera.scale;
    for (const blow of this.blows) {
      context.globalAlpha = 1 - (now - blow.born) / BLOW;
      context.beginPath();
      const reach = 3.4 * camera.scale;
      context.arc(camera.toCanvasX(x), camera.toCanvasY(y), reach, -blow.angle - 0.42, -blow.angle + 0.42);
      context.stroke();
    }
    context.globalAlpha = 1;
    context.lineCap = "butt";
  }

  shot(fromX: number, fromY: number, toX: number, toY: number, aim: number, now: number): void {
    this.tracers.push({ fromX, fromY, toX, toY, born: now });
    this.add("fire", fromX, fromY, 0, 0, 1.5, 90, now);
    this.add("fire", fromX + Math.cos(aim) * 0.6, fromY + Math.sin(aim) * 0.6, 0, 0, 0.9, 120, now);
    for (let puff = 0; puff < 3; puff++) {
      const speed = 1 + Math.random() * 3;
      this.add("smoke", fromX, fromY, Math.cos(aim) * speed, Math.sin(aim) * speed, 0.5, 500, now);
    }
  }

  /** Where a shot ends; `aim` is where it came along. */
  impact(x: number, y: number, aim: number, now: number): void {
    this.add("fire", x, y, 0, 0, 1, 110, now);
    for (let spark = 0; spark < 9; spark++) {
      const [angle, speed] = [aim + Math.PI + (Math.random() - 0.5) * 2.2, 5 + Math.random() * 10];
      this.add("spark", x, y, Math.cos(angle) * speed, Math.sin(angle) * speed, 0.09, 160 + Math.random() * 200, now);
    }
    for (let puff = 0; puff < 2; puff++) {
      this.add("smoke", x, y, Math.random() - 0.5, Math.random() - 0.5, 0.55, 600, now);
    }
  }

  hit(x: number, y: number, now: number): void {
    this.ring(x, y, "#ffb35c", 2.6, 260, now);
    for (let spark = 0; spark < 14; spark++) {
      const [angle, speed] = [Math.random() * 7, 4 + Math.random() * 9];
      this.add("spark", x, y, Math.cos(angle) * speed, Math.sin(angle) * speed, 0.11, 250 + Math.random() * 250, now);
    }
  }

  damage(x: number, y: number, amount: number, colour: string, now: number): void {
    this.note(x + 2.6, y - 0.6 + Math.random() * 1.6, `-${amount}`, colour, now);
  }

  /** Words that rise. */
  note(x: number, y: number, text: string, colour: string, now: number): void {
    this.numbers.push({ x, y, text, colour, born: now });
  }

  explosion(x: number, y: number, now: number): void {
    this.ring(x, y, "#ffd28a", 6, 420, now);
    for (let fire = 0; fire < 10; fire++) {
      const [angle, way] = [Math.random() * 7, Math.random() * 1.3];
      const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
      this.add("fire", x + dx * way, y + dy * way, dx * 2, dy * 2, 1.2 + Math.random() * 1.3, 300 + way * 250, now);
    }
    for (let bit = 0; bit < 22; bit++) {
      const [angle, speed] = [Math.random() * 7, 3 + Math.random() * 11];
      const kind = bit % 2 ? "spark" : "debris";
      this.add(kind, x, y, Math.cos(angle) * speed, Math.sin(angle) * speed, 0.14, 400 + Math.random() * 500, now);
    }
    for (let puff = 0; puff < 9; puff++) {
      this.add("smoke", x, y, (Math.random() - 0.5) * 3, (Math.random() - 0.5) * 3, 1.3, 1_500, now);
    }
  }

  /** A rocket leaves its tube: a flash ahead, and smoke behind it. */
  launch(x: number, y: number, heading: number, now: number): void {
    const [dx, dy] = [Math.cos(heading), Math.sin(heading)];
    this.add("fire", x, y, 0, 0, 1.3, 120, now);
    this.add("fire", x - dx * 0.8, y - dy * 0.8, 0, 0, 0.9, 160, now);
    for (let puff = 0; puff < 7; puff++) {
      const [angle, speed] = [heading + Math.PI + (Math.random() - 0.5) * 1.5, 1 + Math.random() * 4];
      this.add("smoke", x - dx, y - dy, Math.cos(angle) * speed, Math.sin(angle) * speed, 0.6, 700, now);
    }
  }

  /** Smoke behind a rocket. */
  puff(x: number, y: number, heading: number, now: number): void {
    const spread = () => (Math.random() - 0.5) * 0.8;
    const [dx, dy] = [-Math.cos(heading) * 1.5 + spread(), -Math.sin(heading) * 1.5 + spread()];
    this.add("smoke", x, y, dx, dy, 0.34, 620, now);
  }

  /** The end of a rocket, with a short shock ring. */
  burst(x: number, y: number, now: number): void {
    this.ring(x, y, "#fff0cf", 3.6, 240, now);
    this.ring(x, y, "#ff9b4a", 2.6, 340, now);
    this.add("fire", x, y, 0, 0, 2.3, 150, now);
    for (let fire = 0; fire < 6; fire++) {
      const [angle, way] = [Math.random() * 7, Math.random() * 0.8];
      const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
      this.add("fire", x + dx * way, y + dy * way, dx * 2, dy * 2, 0.9 + Math.random() * 0.6, 240 + way * 220, now);
    }
    for (let bit = 0; bit < 14; bit++) {
      const [angle, speed] = [Math.random() * 7, 4 + Math.random() * 9];
      const kind = bit % 3 ? "spark" : "debris";
      this.add(kind, x, y, Math.cos(angle) * speed, Math.sin(angle) * speed, 0.12, 260 + Math.random() * 300, now);
    }
    for (let puff = 0; puff < 5; puff++) {
      this.add("smoke", x, y, (Math.random() - 0.5) * 3, (Math.random() - 0.5) * 3, 0.9, 1_000, now);
    }
  }

  /** A rocket that was drawn and never was: it fades away. */
  fizzle(x: number, y: number, now: number): void {
    for (let puff = 0; puff < 4; puff++) {
      this.add("smoke", x, y, (Math.random() - 0.5) * 2, (Math.random() - 0.5) * 2, 0.5, 600, now);
    }
  }

  respawn(x: number, y: number, colour: string, now: number): void {
    for (const [reach, lasts] of [
      [3.2, 500],
      [4.6, 750],
      [6, 1_000],
    ] as const) {
      this.ring(x, y, colour, reach, lasts, now);
    }
  }

  private ring(x: number, y: number, colour: string, reach: number, lasts: number, born: number): void {
    if (!wantsLessMotion()) this.rings.push({ x, y, colour, reach, born, lasts });
  }

  /** Smoke and flames of a wreck over `seconds`. */
  smoulder(x: number, y: number, seconds: number, now: number): void {
    if (Math.random() < seconds * 9) {
      const [dx, dy] = [0.5 + Math.random() * 0.6, 0.5 + Math.random() * 0.7];
      this.add("smoke", x + Math.random() - 0.5, y + Math.random() - 0.5, dx, dy, 0.8, 2_000, now);
    }
    if (Math.random() < seconds * 5) {
      this.add("fire", x + Math.random() - 0.5, y + Math.random() - 0.5, 0.1, 0.4, 0.45, 260, now);
    }
  }

  draw(
    context: CanvasRenderingContext2D,
    camera: Camera,
    sprites: Sprites,
    palette: Palette,
    now: number,
    seconds: number,
  ): void {
    this.bits = this.bits.filter((bit) => now - bit.born < bit.lasts);
    this.tracers = this.tracers.filter((tracer) => now - tracer.born < TRACER);
    this.rings = this.rings.filter((ring) => now - ring.born < ring.lasts);
    this.numbers = this.numbers.filter((number) => now - number.born < NUMBER);
    this.drawBits(context, camera, sprites, palette, now, seconds);
    this.drawRings(context, camera, now);
    this.drawTracers(context, camera, palette, now);
    this.drawNumbers(context, camera, palette, now);
    context.globalAlpha = 1;
    context.globalCompositeOperation = "source-over";
  }

  private add(
    kind: Kind,
    x: number,
    y: number,
    dx: number,
    dy: number,
    size: number,
    lasts: number,
    born: number,
  ): void {
    if (this.bits.length < MAX_BITS && !wantsLessMotion()) this.bits.push({ kind, x, y, dx, dy, size, born, lasts });
  }

  private drawBits(
    context: CanvasRenderingContext2D,
    camera: Camera,
    sprites: Sprites,
    palette: Palette,
    now: number,
    seconds: number,
  ): void {
    const smoke = sprites.glow(palette.smoke);
    const fire = sprites.glow("#ffab3d");
    const { scale } = camera;
    for (const bit of this.bits) {
      const age = (now - bit.born) / bit.lasts;
      const drag = (bit.kind === "smoke" ? 0.4 : 0.025) ** seconds;
      bit.x += bit.dx * seconds;
      bit.y += bit.dy * seconds;
      bit.dx *= drag;
      bit.dy *= drag;
      if (age < 0 || !camera.sees(bit.x, bit.y, 3)) continue;
      const [x, y] = [camera.toCanvasX(bit.x), camera.toCanvasY(bit.y)];
      if (bit.kind === "smoke" || bit.kind === "fire") {
        const reach = bit.size * scale * (bit.kind === "smoke" ? 0.6 + 1.5 * age : 1.2 - 0.4 * age);
        context.globalAlpha = bit.kind === "smoke" ? 0.42 * (1 - age) * Math.min(1, age * 8) : 1 - age;
        context.globalCompositeOperation = bit.kind === "fire" ? "lighter" : "source-over";
        context.drawImage(bit.kind === "smoke" ? smoke : fire, x - reach, y - reach, 2 * reach, 2 * reach);
      } else {
        context.globalCompositeOperation = "source-over";
        context.globalAlpha = 1 - age;
        context.strokeStyle = bit.kind === "spark" ? "#ffd66b" : "#3a3633";
        context.lineWidth = Math.max(1, bit.size * scale * (bit.kind === "spark" ? 1 : 1.8));
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x - bit.dx * scale * 0.035, y + bit.dy * scale * 0.035);
        context.stroke();
      }
    }
    context.globalCompositeOperation = "source-over";
  }

  private drawRings(context: CanvasRenderingContext2D, camera: Camera, now: number): void {
    for (const ring of this.rings) {
      const age = (now - ring.born) / ring.lasts;
      if (age < 0 || !camera.sees(ring.x, ring.y, ring.reach)) continue;
      const grown = 1 - (1 - age) ** 2;
      context.globalAlpha = (1 - age) * 0.85;
      context.strokeStyle = ring.colour;
      context.lineWidth = (0.1 + 0.3 * (1 - age)) * camera.scale;
      context.beginPath();
      context.arc(camera.toCanvasX(ring.x), camera.toCanvasY(ring.y), ring.reach * grown * camera.scale, 0, 7);
      context.stroke();
    }
  }

  private drawTracers(context: CanvasRenderingContext2D, camera: Camera, palette: Palette, now: number): void {
    context.lineCap = "round";
    for (const tracer of this.tracers) {
      const age = (now - tracer.born) / TRACER;
      if (age < 0) continue;
      // The far end is there at once, as the shot is; the near one catches up.
      const [dx, dy] = [tracer.toX - tracer.fromX, tracer.toY - tracer.fromY];
      const from = wantsLessMotion() ? 0 : Math.min(1, age * 1.15);
      for (const [width, alpha, colour] of [
        [0.34, 0.3, "#ff9b2e"],
        [0.12, 0.95, palette.tracer],
      ] as const) {
        context.globalAlpha = alpha * (1 - age);
        context.strokeStyle = colour;
        context.lineWidth = width * camera.scale;
        context.beginPath();
        context.moveTo(camera.toCanvasX(tracer.fromX + dx * from), camera.toCanvasY(tracer.fromY + dy * from));
        context.lineTo(camera.toCanvasX(tracer.toX), camera.toCanvasY(tracer.toY));
        context.stroke();
      }
    }
    context.lineCap = "butt";
  }

  private drawNumbers(context: CanvasRenderingContext2D, camera: Camera, palette: Palette, now: number): void {
    if (this.numbers.length === 0) return;
    context.font = `700 ${Math.round(Math.max(11, camera.scale * 0.85))}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.lineWidth = 3;
    context.strokeStyle = palette.labelEdge;
    for (const number of this.numbers) {
      const age = (now - number.born) / NUMBER;
      const [x, y] = [camera.toCanvasX(number.x), camera.toCanvasY(number.y + (wantsLessMotion() ? 0 : age * 1.6))];
      context.globalAlpha = Math.min(1, 2 * (1 - age));
      context.fillStyle = number.colour;
      context.strokeText(number.text, x, y);
      context.fillText(number.text, x, y);
    }
  }
}
