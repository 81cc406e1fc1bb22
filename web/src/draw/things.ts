// Rockets, crates and platforms: where they are painted, and in which order.

import { KIND } from "../client";
import { wantsLessMotion } from "../page/motion";
import type { Body, Picture } from "../picture";
import type { Camera } from "./camera";
import type { Effects } from "./effects";
import { colourOf } from "./palette";
import type { Sprites } from "./sprites";

/** Milliseconds that a trail lasts, and from one puff of smoke to the next. */
const TRAIL = 420;
const PUFF = 34;
/** Metres from a rocket's middle to its nozzle. */
const NOZZLE = 0.72;
/** Metres: a rocket that moved so far within a frame was put there. */
const LEAP = 4;

interface Flight {
  /** Newest last. */
  points: { x: number; y: number; at: number }[];
  puffed: number;
  seen: number;
}

export class Things {
  private readonly flights = new Map<number, Flight>();

  constructor(
    private readonly context: CanvasRenderingContext2D,
    private readonly camera: Camera,
    private readonly sprites: Sprites,
  ) {}

  clear(): void {
    this.flights.clear();
  }

  /** Where a rocket was drawn last. */
  lastSeen(id: number): { x: number; y: number } | undefined {
    return this.flights.get(id)?.points.at(-1);
  }

  /** Below everything that can stand on them. */
  drawPlatforms(picture: Picture): void {
    for (const body of this.of(picture, KIND.platform, 5)) {
      this.put(this.sprites.platformShadow(), body.x + 0.3, body.y - 0.38, 0);
      this.put(this.sprites.platform(), body.x, body.y, 0);
    }
    this.context.resetTransform();
  }

  drawCrates(picture: Picture): void {
    for (const body of this.of(picture, KIND.crate, 3)) {
      const turned = turn(body.id);
      this.put(this.sprites.crateShadow(), body.x + 0.26, body.y - 0.34, turned);
      if (body.held) this.context.globalAlpha = 0.65;
      this.put(this.sprites.crate(body.id), body.x, body.y, turned);
      this.context.globalAlpha = 1;
    }
    this.context.resetTransform();
  }

  /** Above all tanks: rockets, and the trails of those that were here a moment ago. */
  drawRockets(picture: Picture, effects: Effects, now: number): void {
    for (let index = 0; index < picture.bodyCount; index++) {
      const body = picture.bodies[index];
      if (body?.kind === KIND.rocket) this.remember(body, effects, now);
    }
    for (const [id, flight] of this.flights) {
      flight.points = flight.points.filter((point) => now - point.at < TRAIL);
      if (flight.points.length === 0 && now - flight.seen > TRAIL) this.flights.delete(id);
      else this.drawTrail(flight, now);
    }
    for (const body of this.of(picture, KIND.rocket, 3)) this.drawRocket(body, now);
    this.context.resetTransform();
    this.context.globalAlpha = 1;
  }

  private *of(picture: Picture, kind: number, reach: number): Generator<Body> {
    for (let index = 0; index < picture.bodyCount; index++) {
      const body = picture.bodies[index];
      if (body?.kind === kind && this.camera.sees(body.x, body.y, reach)) yield body;
    }
  }

  private remember(body: Body, effects: Effects, now: number): void {
    let flight = this.flights.get(body.id);
    if (!flight) this.flights.set(body.id, (flight = { points: [], puffed: now, seen: now }));
    flight.seen = now;
    const x = body.x - Math.cos(body.heading) * NOZZLE;
    const y = body.y - Math.sin(body.heading) * NOZZLE;
    const last = flight.points.at(-1);
    if (last && Math.hypot(x - last.x, y - last.y) > LEAP) flight.points = [];
    flight.points.push({ x, y, at: now });
    if (now - flight.puffed < PUFF || !this.camera.sees(x, y, 3)) return;
    flight.puffed = now;
    effects.puff(x, y, body.heading, now);
  }

  private drawTrail({ points, seen }: Flight, now: number): void {
    if (wantsLessMotion() || now - seen > TRAIL) return;
    const { context, camera } = this;
    context.resetTransform();
    context.lineCap = "round";
    for (const [width, strength, colour] of [
      [0.5, 0.28, "#ff8a2e"],
      [0.2, 0.75, "#ffe3a8"],
    ] as const) {
      context.strokeStyle = colour;
      for (let index = 1; index < points.length; index++) {
        const [from, to] = [points[index - 1], points[index]];
        if (!from || !to) continue;
        const young = 1 - (now - to.at) / TRAIL;
        context.globalAlpha = strength * young * young;
        context.lineWidth = Math.max(1, width * (0.35 + 0.65 * young) * camera.scale);
        context.beginPath();
        context.moveTo(camera.toCanvasX(from.x), camera.toCanvasY(from.y));
        context.lineTo(camera.toCanvasX(to.x), camera.toCanvasY(to.y));
        context.stroke();
      }
    }
    context.lineCap = "butt";
    context.globalAlpha = 1;
  }

  private drawRocket(body: Body, now: number): void {
    const { context, sprites } = this;
    const flicker = wantsLessMotion() ? 0 : Math.floor(now / 40 + body.id) % 2;
    context.globalCompositeOperation = "lighter";
    this.put(sprites.flame(flicker), body.x, body.y, body.heading);
    context.globalCompositeOperation = "source-over";
    const colour = body.owner < 0 ? "#9aa3a6" : colourOf(body.owner, body.own);
    this.put(sprites.rocket(colour), body.x, body.y, body.heading);
  }

  private put(sprite: HTMLCanvasElement, x: number, y: number, angle: number): void {
    const { context, camera } = this;
    const [sin, cos] = [Math.sin(-angle), Math.cos(-angle)];
    context.setTransform(cos, sin, -sin, cos, camera.toCanvasX(x), camera.toCanvasY(y));
    context.drawImage(sprite, -sprite.width / 2, -sprite.height / 2);
  }
}

/** Radians: crates are round to what meets them, so each can lie as it likes. */
function turn(id: number): number {
  return ((id % 7) - 3) * 0.16;
}
