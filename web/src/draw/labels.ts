// Names and hit points over tanks. Names are painted once: text is the slowest thing to draw.

import type { Tank } from "../picture";
import type { Camera } from "./camera";
import type { Palette } from "./palette";

const FONT = (pixels: number) => `600 ${pixels}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;

export class Labels {
  private players = new Map<string, HTMLCanvasElement>();
  private machines = new Map<string, HTMLCanvasElement>();
  private pixels = 0;

  constructor(private palette: Palette) {}

  repaint(palette: Palette): void {
    this.palette = palette;
    this.forget();
  }

  /** `ratio` is canvas pixels per pixel of the page: text has the same size at every zoom. */
  draw(context: CanvasRenderingContext2D, camera: Camera, tank: Tank, name: string, ratio: number): void {
    const pixels = Math.round(12 * ratio);
    if (pixels !== this.pixels) this.forget();
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
    const label = this.label(name, tank.machine);
    context.drawImage(label, Math.round(x - label.width / 2), top - label.height - Math.round(ratio));
  }

  private label(name: string, machine: boolean): HTMLCanvasElement {
    const painted = machine ? this.machines : this.players;
    let canvas = painted.get(name);
    if (canvas) return canvas;
    canvas = document.createElement("canvas");
    const context = canvas.getContext("2d");
    if (!context) return canvas;
    context.font = FONT(this.pixels);
    const mark = machine ? Math.round(this.pixels * 0.95) : 0;
    canvas.width = Math.ceil(context.measureText(name).width) + 8 + mark;
    canvas.height = Math.ceil(this.pixels * 1.45);
    context.font = FONT(this.pixels);
    context.textBaseline = "middle";
    context.lineJoin = "round";
    context.lineWidth = Math.max(3, this.pixels / 4);
    context.strokeStyle = this.palette.labelEdge;
    context.strokeText(name, 4 + mark, canvas.height / 2);
    context.fillStyle = machine ? this.palette.machineLabel : this.palette.label;
    context.fillText(name, 4 + mark, canvas.height / 2);
    if (machine) paintMark(context, 4 + mark * 0.36, canvas.height / 2, this.pixels * 0.34);
    // Names come and go; a room has some hundred.
    if (painted.size > 400) painted.clear();
    painted.set(name, canvas);
    return canvas;
  }

  private forget(): void {
    this.players.clear();
    this.machines.clear();
  }
}

/** The hexagon of a machine, in the colours of the text beside it. */
function paintMark(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.beginPath();
  for (let corner = 0; corner < 6; corner++) {
    const angle = (corner * Math.PI) / 3;
    context.lineTo(x + Math.cos(angle) * radius, y + Math.sin(angle) * radius);
  }
  context.closePath();
  context.stroke();
  context.fill();
}
