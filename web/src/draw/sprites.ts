// Tanks and other bodies as small pictures, painted once for each colour and size.

import { paintCrate, paintFlame, paintPlatform, paintRocket } from "./cargo";
import { mix, withAlpha } from "./ground";
import { colourOf } from "./palette";

/** Metres from a sprite's middle to its edge. The hull that collides has 1.5. */
export const REACH = 2.6;
/** Metres from the turret's middle to the muzzle. */
export const MUZZLE = 2.15;
/** How many pictures a track's links take to move on by one. */
const PHASES = 4;
/** Metres from one link to the next. */
const LINK = 0.32;

/** The same of a platform and its shadow. */
const DECK_REACH = 4;

type Part =
  | "hull"
  | "turret"
  | "wreck"
  | "shadow"
  | "glow"
  | "crate"
  | "crateShadow"
  | "platform"
  | "platformShadow"
  | "rocket"
  | "flame";

export class Sprites {
  private made = new Map<string, HTMLCanvasElement>();
  private scale = 0;

  /** For pictures of `scale` pixels per metre. */
  resize(scale: number): void {
    if (scale !== this.scale) this.made.clear();
    this.scale = scale;
  }

  /** `travelled` metres turn the tracks. */
  hull(fighter: number, own: boolean, travelled: number): HTMLCanvasElement {
    const phase = ((Math.floor((travelled / LINK) * PHASES) % PHASES) + PHASES) % PHASES;
    return this.sprite("hull", colourOf(fighter, own), phase);
  }

  turret(fighter: number, own: boolean): HTMLCanvasElement {
    return this.sprite("turret", colourOf(fighter, own), 0);
  }

  wreck(): HTMLCanvasElement {
    return this.sprite("wreck", "#2b2b2a", 0);
  }

  shadow(): HTMLCanvasElement {
    return this.sprite("shadow", "#000000", 0);
  }

  /** They differ a little. */
  crate(id: number): HTMLCanvasElement {
    return this.sprite("crate", "", id % 3);
  }

  crateShadow(): HTMLCanvasElement {
    return this.sprite("crateShadow", "", 0);
  }

  platform(): HTMLCanvasElement {
    return this.sprite("platform", "", 0);
  }

  platformShadow(): HTMLCanvasElement {
    return this.sprite("platformShadow", "", 0);
  }

  rocket(colour: string): HTMLCanvasElement {
    return this.sprite("rocket", colour, 0);
  }

  /** `flicker` 0 or 1. */
  flame(flicker: number): HTMLCanvasElement {
    return this.sprite("flame", "", flicker);
  }

  /** A soft disc. */
  glow(colour: string): HTMLCanvasElement {
    return this.sprite("glow", colour, 0);
  }

  private sprite(part: Part, colour: string, phase: number): HTMLCanvasElement {
    const key = `${part}${colour}${phase}`;
    let canvas = this.made.get(key);
    if (!canvas) {
      canvas = this.paint(part, colour, phase);
      this.made.set(key, canvas);
    }
    return canvas;
  }

  private paint(part: Part, colour: string, phase: number): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    const reach = part === "platform" || part === "platformShadow" ? DECK_REACH : REACH;
    canvas.width = canvas.height = Math.ceil(2 * reach * this.scale);
    const context = canvas.getContext("2d");
    if (!context) return canvas;
    // Metres, the tank heads to the right; y is down, and tanks are the same on both sides.
    context.setTransform(this.scale, 0, 0, this.scale, canvas.width / 2, canvas.height / 2);
    if (part === "hull") paintHull(context, colour, (phase / PHASES) * LINK);
    else if (part === "turret") paintTurret(context, colour);
    else if (part === "wreck") paintWreck(context);
    else if (part === "shadow") paintShadow(context, this.scale, [1.45, 1.1]);
    else if (part === "crateShadow") paintShadow(context, this.scale, [1.3, 1.3]);
    else if (part === "platformShadow") paintShadow(context, this.scale, [3, 3]);
    else if (part === "crate") paintCrate(context, phase);
    else if (part === "platform") paintPlatform(context);
    else if (part === "rocket") paintRocket(context, colour);
    else if (part === "flame") paintFlame(context, phase);
    else paintGlow(context, colour);
    return canvas;
  }
}

function rounded(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number, radius: number): void {
  context.beginPath();
  context.roundRect(x, y, w, h, radius);
  context.fill();
}

function polygon(context: CanvasRenderingContext2D, points: readonly (readonly [number, number])[]): void {
  context.beginPath();
  for (const [x, y] of points) context.lineTo(x, y);
  context.closePath();
}

function paintTracks(context: CanvasRenderingContext2D, moved: number): void {
  for (const side of [-1, 1]) {
    const y = side * 0.86 - 0.29;
    context.fillStyle = "#1b1d1e";
    rounded(context, -1.5, y, 3, 0.58, 0.22);
    context.save();
    context.beginPath();
    context.roundRect(-1.5, y, 3, 0.58, 0.22);
    context.clip();
    context.fillStyle = "#4a4d4e";
    for (let x = -1.5 - LINK; x < 1.5 + LINK; x += LINK) context.fillRect(x + moved, y + 0.06, 0.13, 0.46);
    context.restore();
  }
}

function paintHull(context: CanvasRenderingContext2D, colour: string, moved: number): void {
  paintTracks(context, moved);
  const plates = [
    [-1.38, -0.72],
    [0.95, -0.72],
    [1.45, -0.42],
    [1.45, 0.42],
    [0.95, 0.72],
    [-1.38, 0.72],
  ] as const;
  const gradient = context.createLinearGradient(-1.4, 0, 1.45, 0);
  gradient.addColorStop(0, mix(colour, "#000000", 0.32));
  gradient.addColorStop(0.7, mix(colour, "#000000", 0.08));
  gradient.addColorStop(1, mix(colour, "#ffffff", 0.18));
  polygon(context, plates);
  context.fillStyle = gradient;
  context.fill();
  context.lineWidth = 0.08;
  context.strokeStyle = mix(colour, "#000000", 0.62);
  context.stroke();
  // The slope in front, so that one sees where it heads.
  polygon(context, [
    [0.72, -0.66],
    [0.95, -0.66],
    [1.39, -0.38],
    [1.39, 0.38],
    [0.95, 0.66],
    [0.72, 0.66],
  ]);
  context.fillStyle = mix(colour, "#ffffff", 0.26);
  context.fill();
  context.fillStyle = mix(colour, "#000000", 0.6);
  for (let grill = 0; grill < 4; grill++) context.fillRect(-1.26 + grill * 0.14, -0.42, 0.06, 0.84);
  context.fillStyle = mix(colour, "#ffffff", 0.6);
  rounded(context, 1.22, -0.34, 0.12, 0.14, 0.05);
  rounded(context, 1.22, 0.2, 0.12, 0.14, 0.05);
}

function paintTurret(context: CanvasRenderingContext2D, colour: string): void {
  const dark = mix(colour, "#000000", 0.6);
  context.save();
  context.fillStyle = "rgb(0 0 0 / 30%)";
  context.translate(0.1, 0.12);
  rounded(context, 0.3, -0.13, MUZZLE - 0.3, 0.26, 0.05);
  context.restore();
  context.fillStyle = mix(colour, "#000000", 0.42);
  rounded(context, 0.4, -0.12, MUZZLE - 0.5, 0.24, 0.04);
  context.fillStyle = mix(colour, "#ffffff", 0.1);
  context.fillRect(0.4, -0.1, MUZZLE - 0.6, 0.06);
  context.fillStyle = dark;
  rounded(context, MUZZLE - 0.32, -0.18, 0.32, 0.36, 0.06);
  const shape = [
    [-0.82, -0.42],
    [-0.3, -0.66],
    [0.38, -0.5],
    [0.74, -0.2],
    [0.74, 0.2],
    [0.38, 0.5],
    [-0.3, 0.66],
    [-0.82, 0.42],
  ] as const;
  const gradient = context.createRadialGradient(-0.1, 0, 0.05, -0.1, 0, 0.9);
  gradient.addColorStop(0, mix(colour, "#ffffff", 0.3));
  gradient.addColorStop(1, mix(colour, "#000000", 0.14));
  polygon(context, shape);
  context.fillStyle = gradient;
  context.fill();
  context.lineWidth = 0.08;
  context.strokeStyle = dark;
  context.stroke();
  context.beginPath();
  context.arc(-0.3, 0.2, 0.2, 0, 7);
  context.fillStyle = mix(colour, "#000000", 0.28);
  context.fill();
  context.lineWidth = 0.05;
  context.stroke();
}

function paintWreck(context: CanvasRenderingContext2D): void {
  const gradient = context.createRadialGradient(0, 0, 0.6, 0, 0, REACH);
  gradient.addColorStop(0, "rgb(0 0 0 / 60%)");
  gradient.addColorStop(1, "rgb(0 0 0 / 0%)");
  context.fillStyle = gradient;
  context.fillRect(-REACH, -REACH, 2 * REACH, 2 * REACH);
  paintHull(context, "#3b3836", 0);
  context.save();
  context.rotate(0.7);
  context.translate(-0.15, 0.2);
  paintTurret(context, "#332f2d");
  context.restore();
  context.fillStyle = "#0c0b0b";
  for (const [x, y, r] of [
    [-0.7, -0.2, 0.34],
    [0.5, 0.3, 0.22],
    [-0.2, 0.5, 0.18],
  ] as const) {
    context.beginPath();
    context.ellipse(x, y, r, r * 0.8, x, 0, 7);
    context.fill();
  }
}

/** `half` of its length and of its width. */
function paintShadow(context: CanvasRenderingContext2D, scale: number, half: readonly [number, number]): void {
  // Only the shadow of a shape far to the left: soft edges without a filter, which not every browser has.
  context.shadowColor = "rgb(0 0 0 / 58%)";
  context.shadowBlur = 0.45 * scale;
  context.shadowOffsetX = 20 * scale;
  context.fillStyle = "#000000";
  rounded(context, -20 - half[0], -half[1], 2 * half[0], 2 * half[1], 0.3);
}

function paintGlow(context: CanvasRenderingContext2D, colour: string): void {
  const gradient = context.createRadialGradient(0, 0, 0, 0, 0, REACH);
  gradient.addColorStop(0, colour);
  gradient.addColorStop(0.35, withAlpha(colour, 0.55));
  gradient.addColorStop(1, withAlpha(colour, 0));
  context.fillStyle = gradient;
  context.fillRect(-REACH, -REACH, 2 * REACH, 2 * REACH);
}
