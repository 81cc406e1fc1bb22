// The whole arena in a corner.

import type { Site } from "../client";
import { KIND } from "../client";
import type { Picture } from "../picture";
import { colourOf } from "./palette";
import type { Palette } from "./palette";
import type { Camera } from "./camera";

/** Frames from one to the next: nobody sees a dot move by a tenth of a pixel. */
const EVERY = 4;

export class Minimap {
  private readonly context: CanvasRenderingContext2D | null;
  private fixed: HTMLCanvasElement | undefined;
  private turn = 0;
  private readonly scale: number;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly arena: Site["arena"],
    private palette: Palette,
  ) {
    // As wide as the page wants it, as high as the arena is: no letter box.
    canvas.height = Math.round((canvas.width * arena.size[1]) / arena.size[0]);
    this.scale = canvas.width / arena.size[0];
    this.context = canvas.getContext("2d");
  }

  repaint(palette: Palette): void {
    this.palette = palette;
    this.fixed = undefined;
  }

  /** `followed` stands out, as the own one does. */
  draw(picture: Picture, camera: Camera, followed?: number): void {
    if (this.turn++ % EVERY !== 0 || !this.context) return;
    const { context, canvas, scale } = this;
    this.fixed ??= this.paintFixed();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(this.fixed, 0, 0);
    context.setTransform(scale, 0, 0, -scale, canvas.width / 2, canvas.height / 2);
    const [left, top] = camera.toWorld(0, 0);
    const [right, bottom] = camera.toWorld(camera.width, camera.height);
    context.strokeStyle = this.palette.label;
    context.globalAlpha = 0.35;
    context.lineWidth = 1 / scale;
    context.strokeRect(left, bottom, right - left, top - bottom);
    context.globalAlpha = 1;
    this.drawBodies(picture);
    for (let index = 0; index < picture.tankCount; index++) {
      const tank = picture.tanks[index];
      if (!tank || tank.own || !tank.alive) continue;
      this.dot(tank.x, tank.y, 3, colourOf(tank.fighter, false));
    }
    const own = followed === undefined ? picture.own : picture.find(followed);
    if (!own || (own.own && !picture.playing)) return;
    this.dot(own.x, own.y, 6.5, this.palette.barBack);
    this.dot(own.x, own.y, 5, colourOf(own.fighter, own.own));
  }

  private drawBodies(picture: Picture): void {
    const { context } = this;
    for (let index = 0; index < picture.bodyCount; index++) {
      const body = picture.bodies[index];
      if (!body || !context) continue;
      if (body.kind === KIND.rocket) this.dot(body.x, body.y, 2.2, "#ff9b4a");
      else {
        const half = body.kind === KIND.platform ? 3 : 1.5;
        context.fillStyle = body.kind === KIND.platform ? "#9fb0b7" : "#b58549";
        context.fillRect(body.x - half, body.y - half, 2 * half, 2 * half);
      }
    }
  }

  private dot(x: number, y: number, pixels: number, colour: string): void {
    const { context } = this;
    if (!context) return;
    context.fillStyle = colour;
    context.beginPath();
    context.arc(x, y, pixels / this.scale, 0, 7);
    context.fill();
  }

  private paintFixed(): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    canvas.width = this.canvas.width;
    canvas.height = this.canvas.height;
    const context = canvas.getContext("2d");
    if (!context) return canvas;
    context.globalAlpha = 0.75;
    context.fillStyle = this.palette.ground;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.globalAlpha = 1;
    context.setTransform(this.scale, 0, 0, -this.scale, canvas.width / 2, canvas.height / 2);
    context.fillStyle = this.palette.wall[0];
    for (const obstacle of this.arena.obstacles) {
      if ("block" in obstacle) {
        const { min, max } = obstacle.block;
        context.fillRect(min[0], min[1], max[0] - min[0], max[1] - min[1]);
      } else {
        context.beginPath();
        context.arc(...obstacle.pillar.center, obstacle.pillar.radius, 0, 7);
        context.fill();
      }
    }
    return canvas;
  }
}
