// Names and hit points over tanks. Names are painted once: text is the slowest thing to draw.

import type { Tank } from "../picture";
import type { Camera } from "./camera";
import type { Palette } from "./palette";

const FONT = (pixels: number) => `600 ${pixels}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;

export class Labels {
  private painted = new Map<string, HTMLCanvasElement>();
  private pixels = 0;

  constructor(private palette: Palette) {}

  repaint(palette: Palette): void {
    this.palette = palette;
    this.painted.clear();
  }

  /** `ratio` is canvas pixels per pixel of the page: text has the same size at every zoom. */
  draw(context: CanvasRenderingContext2D, camera: Camera, tank: Tank, name: string, ratio: number): void {
    const pixels = Math.round(12 * ratio);
    if (pixels !== this.pixels) this.painted.clear();
    this.pixels = pixels;
    const x = camera.toCanvasX(tank.x);
    const width = Math.round(2.6 * camera.scale);
    const height = Math.max(3, Math.round(4 * ratio));
    const top = Math.round(camera.toCanvasY(tank.y + 2.45));
    const left = Math.round(x - width / 2);
    context.fillStyle = this.palette.barBack;
    context.fillRect(left - 1, top - 1, width + 2, height + 2);
    context.fillStyle = tank.hp > 50 ? this.palette.good : tank.hp > 25 ? "#f2b33d" : this.palette.bad;
    context.fillRect(left, top, Math.round((width * Math.max(0, tank.hp)) / 100), height);
    const label = this.label(name);
    context.drawImage(label, Math.round(x - label.width / 2), top - label.height - Math.round(ratio));
  }

  private label(name: string): HTMLCanvasElement {
    let canvas = this.painted.get(name);
    if (canvas) return canvas;
    canvas = document.createElement("canvas");
    const context = canvas.getContext("2d");
    if (!context) return canvas;
    context.font = FONT(this.pixels);
    canvas.width = Math.ceil(context.measureText(name).width) + 8;
    canvas.height = Math.ceil(this.pixels * 1.45);
    context.font = FONT(this.pixels);
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = Math.max(3, this.pixels / 4);
    context.strokeStyle = this.palette.labelEdge;
    context.strokeText(name, 4, canvas.height / 2);
    context.fillStyle = this.palette.label;
    context.fillText(name, 4, canvas.height / 2);
    // Names come and go; a room has some hundred.
    if (this.painted.size > 400) this.painted.clear();
    this.painted.set(name, canvas);
    return canvas;
  }
}
