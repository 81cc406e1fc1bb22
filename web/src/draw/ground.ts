// What does not move: earth, walls, pillars and their shadows, painted once into tiles and kept.

import type { Site } from "../client";
import { TILE } from "./camera";
import type { Camera } from "./camera";
import { MarkedTile } from "./marks";
import type { Palette } from "./palette";

type Arena = Site["arena"];

/** Enough for a large screen and what is around it; the ones that were not used for longest go. */
const MAX_TILES = 72;
/** Milliseconds from one round of marks to the next: what is not painted yet is under the tank. */
const MARK_EVERY = 100;
/** Milliseconds of a frame that may go into new tiles; what is not painted yet is plain for a frame or two. */
const PAINT = 8;
/** Pixels per metre of what has no edges. */
const COARSE = 4;
/** Metres between crosses of the survey grid: something to see one's own speed by. */
const SURVEY = 8;

interface Tile {
  clean: HTMLCanvasElement;
  marked: MarkedTile | undefined;
  used: number;
}

/** A line: its middle, and half of its length along both axes, metres. */
interface Mark {
  x: number;
  y: number;
  dx: number;
  dy: number;
}

export class Ground {
  private tiles = new Map<string, Tile>();
  private pixels = 0;
  private turn = 0;
  private speckle: CanvasPattern | null = null;
  /** What waits to be painted. */
  private marks: Mark[] = [];
  private markedAt = 0;

  constructor(
    private readonly arena: Arena,
    private palette: Palette,
  ) {}

  repaint(palette: Palette): void {
    this.palette = palette;
    this.tiles.clear();
    this.speckle = null;
  }

  /** A line on the ground, around a point, `dx` and `dy` to either side. */
  mark(x: number, y: number, dx: number, dy: number): void {
    this.marks.push({ x, y, dx, dy });
  }

  /** `patience`: milliseconds that may go into new tiles. */
  draw(context: CanvasRenderingContext2D, camera: Camera, now: number, patience = PAINT): void {
    const pixels = Math.round(TILE * camera.scale);
    if (pixels !== this.pixels) this.tiles.clear();
    this.pixels = pixels;
    this.turn += 1;
    this.age(now);
    const [left, top] = camera.toWorld(0, 0);
    const [right, bottom] = camera.toWorld(camera.width, camera.height);
    const [west, east] = [Math.floor(left / TILE), Math.floor(right / TILE)];
    const [south, north] = [Math.floor(bottom / TILE), Math.floor(top / TILE)];
    const until = performance.now() + patience;
    for (let column = west; column <= east; column++) {
      for (let row = south; row <= north; row++) {
        const x = Math.round(camera.toCanvasX(column * TILE));
        const y = Math.round(camera.toCanvasY((row + 1) * TILE));
        if (this.tiles.has(`${column} ${row}`) || performance.now() < until) {
          const tile = this.tile(column, row);
          context.drawImage(tile.marked?.canvas ?? tile.clean, x, y);
        } else {
          context.fillStyle = this.palette.ground;
          context.fillRect(x, y, pixels, pixels);
        }
      }
    }
    if (performance.now() < until) this.paintOneAhead(west, east, south, north);
    this.forget();
  }

  /** A tile next to what is seen, so that driving there paints nothing in a hurry. */
  private paintOneAhead(west: number, east: number, south: number, north: number): void {
    for (let column = west - 1; column <= east + 1; column++) {
      for (const row of [south - 1, north + 1]) if (this.paintIfMissing(column, row)) return;
    }
    for (let row = south; row <= north; row++) {
      for (const column of [west - 1, east + 1]) if (this.paintIfMissing(column, row)) return;
    }
  }

  private paintIfMissing(column: number, row: number): boolean {
    if (this.tiles.has(`${column} ${row}`)) return false;
    this.tile(column, row);
    return true;
  }

  /** Paints what was driven, and lets what is old fade. */
  private age(now: number): void {
    if (now - this.markedAt < MARK_EVERY) return;
    this.markedAt = now;
    const scale = this.pixels / TILE;
    const lines = new Map<string, number[]>();
    for (const mark of this.marks) {
      // In every tile that it touches, or it would end at the seam.
      const key = this.note(lines, mark, -1, "");
      this.note(lines, mark, 1, key);
    }
    this.marks = [];
    for (const [key, tile] of this.tiles) {
      if (tile.marked && !tile.marked.fade(now)) tile.marked = undefined;
      const line = lines.get(key);
      if (!line) continue;
      tile.marked ??= new MarkedTile(tile.clean, now);
      tile.marked.mark(line, 0.17 * scale, `rgb(${this.palette.track} / 42%)`, now);
    }
  }

  /** Adds a mark to those of the tile that its end is in, unless that is the tile `but`. Gives which tile that is. */
  private note(lines: Map<string, number[]>, { x, y, dx, dy }: Mark, end: -1 | 1, but: string): string {
    const [column, row] = [Math.floor((x + end * dx) / TILE), Math.floor((y + end * dy) / TILE)];
    const key = `${column} ${row}`;
    if (key === but || !this.tiles.has(key)) return key;
    const scale = this.pixels / TILE;
    const [left, top] = [(x - column * TILE) * scale, ((row + 1) * TILE - y) * scale];
    const line = [left - dx * scale, top + dy * scale, left + dx * scale, top - dy * scale];
    const known = lines.get(key);
    if (known) known.push(...line);
    else lines.set(key, line);
    return key;
  }

  private tile(column: number, row: number): Tile {
    const key = `${column} ${row}`;
    let tile = this.tiles.get(key);
    if (!tile) {
      tile = { clean: this.paint(column, row), marked: undefined, used: 0 };
      this.tiles.set(key, tile);
    }
    tile.used = this.turn;
    return tile;
  }

  private forget(): void {
    if (this.tiles.size <= MAX_TILES) return;
    const oldest = [...this.tiles].sort(([, one], [, other]) => one.used - other.used);
    for (const [key, tile] of oldest.slice(0, this.tiles.size - MAX_TILES)) {
      // What is seen stays: in a small picture there are more.
      if (tile.used !== this.turn) this.tiles.delete(key);
    }
  }

  private paint(column: number, row: number): HTMLCanvasElement {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = this.pixels;
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return canvas;
    const scale = this.pixels / TILE;
    // From here on in metres, y up.
    context.setTransform(scale, 0, 0, -scale, -column * TILE * scale, (row + 1) * TILE * scale);
    const [width, height] = this.arena.size;
    this.paintEarth(context, column * TILE, row * TILE);
    // The same earth goes on outside, where nobody gets to.
    context.fillStyle = withAlpha(this.palette.outside, 0.72);
    context.beginPath();
    context.rect(column * TILE, row * TILE, TILE, TILE);
    context.rect(-width / 2, -height / 2, width, height);
    context.fill("evenodd");
    context.save();
    context.beginPath();
    context.rect(-width / 2, -height / 2, width, height);
    context.clip();
    this.paintMarkings(context, column * TILE, row * TILE);
    context.restore();
    this.paintBorder(context, scale);
    this.paintObstacles(context, column * TILE, row * TILE, scale);
    return canvas;
  }

  private paintEarth(context: CanvasRenderingContext2D, left: number, bottom: number): void {
    // A metre more on each side: where two tiles meet, both have been smoothed alike.
    const [west, south, side] = [left - 1, bottom - 1, TILE + 2];
    context.drawImage(this.paintBlotches(west, south, side), west, south, side, side);
    this.paintSpeckle(context, left, bottom);
    this.paintStones(context, left, bottom);
    this.paintTufts(context, left, bottom);
  }

  /** Coarse: they have no edges, and are the dearest thing to paint. North is below. */
  private paintBlotches(west: number, south: number, side: number): HTMLCanvasElement {
    const { blotches, ground } = this.palette;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = side * COARSE;
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) return canvas;
    context.setTransform(COARSE, 0, 0, COARSE, -west * COARSE, -south * COARSE);
    context.fillStyle = ground;
    context.fillRect(west, south, side, side);
    const reach = 12;
    each(west - reach, west + side + reach, 6, (x) =>
      each(south - reach, south + side + reach, 6, (y) => {
        const [a, b, c, d] = dice(x, y);
        const [cx, cy, radius] = [x + a * 6, y + b * 6, 4 + c * 7];
        const colour = blotches[Math.floor(d * blotches.length)] ?? ground;
        const gradient = context.createRadialGradient(cx, cy, 0, cx, cy, radius);
        gradient.addColorStop(0, withAlpha(colour, 0.55));
        gradient.addColorStop(1, withAlpha(colour, 0));
        context.fillStyle = gradient;
        context.fillRect(cx - radius, cy - radius, 2 * radius, 2 * radius);
      }),
    );
    return canvas;
  }

  private paintSpeckle(context: CanvasRenderingContext2D, left: number, bottom: number): void {
    this.speckle ??= context.createPattern(speckleTile(this.palette), "repeat");
    if (!this.speckle) return;
    context.save();
    // In pixels: grain does not grow with the picture. 128 pixels repeat in step with the tile's corner.
    context.resetTransform();
    context.translate((Math.abs(left * 37) % 128) | 0, (Math.abs(bottom * 53) % 128) | 0);
    context.fillStyle = this.speckle;
    context.fillRect(-128, -128, this.pixels + 128, this.pixels + 128);
    context.restore();
  }

  private paintStones(context: CanvasRenderingContext2D, left: number, bottom: number): void {
    each(left, left + TILE, 2, (x) =>
      each(bottom, bottom + TILE, 2, (y) => {
        const [a, b, c, d] = dice(x + 0.5, y + 0.25);
        if (d > 0.3) return;
        const [cx, cy, size] = [x + 0.2 + a * 1.6, y + 0.2 + b * 1.6, 0.05 + c * 0.11];
        context.fillStyle = this.palette.speckDark;
        context.beginPath();
        context.ellipse(cx + 0.05, cy - 0.06, size * 1.3, size, a * 3, 0, 7);
        context.fill();
        context.fillStyle = this.palette.speckLight;
        context.beginPath();
        context.ellipse(cx, cy, size * 1.3, size, a * 3, 0, 7);
        context.fill();
      }),
    );
  }

  /** Grass, where it is green already. */
  private paintTufts(context: CanvasRenderingContext2D, left: number, bottom: number): void {
    context.strokeStyle = this.palette.tuft;
    context.lineWidth = 0.06;
    context.lineCap = "round";
    context.beginPath();
    each(left - 2, left + TILE + 2, 2, (x) =>
      each(bottom - 2, bottom + TILE + 2, 2, (y) => {
        const [a, b, c, d] = dice(x - 0.5, y + 0.75);
        const [, , , meadow] = dice(Math.floor(x / 6) * 6, Math.floor(y / 6) * 6);
        if (d > (meadow > 0.55 ? 0.5 : 0.08)) return;
        for (let blade = -2; blade <= 2; blade++) {
          const [rootX, rootY] = [x + a * 2, y + b * 2];
          context.moveTo(rootX, rootY);
          context.lineTo(rootX + blade * 0.11, rootY + 0.22 + c * 0.22 - Math.abs(blade) * 0.05);
        }
      }),
    );
    context.stroke();
  }

  private paintMarkings(context: CanvasRenderingContext2D, left: number, bottom: number): void {
    context.strokeStyle = this.palette.survey;
    context.lineWidth = 0.09;
    context.beginPath();
    each(left, left + TILE, SURVEY, (x) => {
      context.moveTo(x, bottom);
      context.lineTo(x, bottom + TILE);
    });
    each(bottom, bottom + TILE, SURVEY, (y) => {
      context.moveTo(left, y);
      context.lineTo(left + TILE, y);
    });
    context.stroke();
    const [width, height] = this.arena.size;
    context.strokeStyle = this.palette.paint;
    context.lineWidth = 0.22;
    context.setLineDash([1.6, 1.1]);
    context.strokeRect(-width / 2 + 2.2, -height / 2 + 2.2, width - 4.4, height - 4.4);
    context.setLineDash([]);
    context.lineWidth = 0.3;
    context.beginPath();
    context.arc(0, 0, Math.min(8, height / 6), 0, 7);
    context.stroke();
  }

  private paintBorder(context: CanvasRenderingContext2D, scale: number): void {
    const [width, height] = this.arena.size;
    const [top, lit, dim] = this.palette.wall;
    const [left, bottom, thick] = [-width / 2, -height / 2, 1.2];
    // The shadow of a frame falls inside: that of everything around with a hole in it.
    context.save();
    this.castShadow(context, scale);
    context.fillStyle = top;
    context.beginPath();
    context.rect(left - thick, bottom - thick, width + 2 * thick, height + 2 * thick);
    context.rect(left, bottom, width, height);
    context.fill("evenodd");
    context.restore();
    context.strokeStyle = lit;
    context.lineWidth = 0.14;
    context.strokeRect(left - thick, bottom - thick, width + 2 * thick, height + 2 * thick);
    context.strokeStyle = dim;
    context.strokeRect(left, bottom, width, height);
  }

  private paintObstacles(context: CanvasRenderingContext2D, left: number, bottom: number, scale: number): void {
    const near = (minX: number, minY: number, maxX: number, maxY: number) =>
      maxX > left - 4 && minX < left + TILE + 4 && maxY > bottom - 4 && minY < bottom + TILE + 4;
    const seen = this.arena.obstacles.filter((obstacle) => {
      if ("block" in obstacle) return near(...obstacle.block.min, ...obstacle.block.max);
      const { center, radius } = obstacle.pillar;
      return near(center[0] - radius, center[1] - radius, center[0] + radius, center[1] + radius);
    });
    // All shadows first, as one: they are all as high, so none falls on another, and where two meet it is no darker.
    context.save();
    this.castShadow(context, scale);
    context.fillStyle = this.palette.wall[2];
    context.beginPath();
    for (const obstacle of seen) {
      if ("block" in obstacle) {
        const { min, max } = obstacle.block;
        context.rect(min[0], min[1], max[0] - min[0], max[1] - min[1]);
      } else {
        const { center, radius } = obstacle.pillar;
        context.moveTo(center[0] + radius, center[1]);
        context.arc(...center, radius, 0, 7);
      }
    }
    context.fill();
    context.restore();
    for (const obstacle of seen) {
      if ("block" in obstacle) this.paintBlock(context, obstacle.block.min, obstacle.block.max);
      else this.paintPillar(context, ...obstacle.pillar.center, obstacle.pillar.radius);
    }
  }

  private castShadow(context: CanvasRenderingContext2D, scale: number): void {
    context.shadowColor = this.palette.shadow;
    context.shadowBlur = 1.1 * scale;
    context.shadowOffsetX = 0.55 * scale;
    context.shadowOffsetY = 0.75 * scale;
  }

  private paintBlock(context: CanvasRenderingContext2D, min: [number, number], max: [number, number]): void {
    const [x, y, w, h] = [min[0], min[1], max[0] - min[0], max[1] - min[1]];
    const [top, lit, dim] = this.palette.wall;
    context.fillStyle = dim;
    context.fillRect(x, y, w, h);
    // Light from the north-west: two bright edges, two dark ones.
    context.fillStyle = lit;
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x, y + h);
    context.lineTo(x + w, y + h);
    context.lineTo(x + w - 0.28, y + h - 0.28);
    context.lineTo(x + 0.28, y + h - 0.28);
    context.lineTo(x + 0.28, y + 0.28);
    context.fill();
    const gradient = context.createLinearGradient(x, y + h, x + w * 0.3, y);
    gradient.addColorStop(0, top);
    gradient.addColorStop(1, mix(top, dim, 0.25));
    context.fillStyle = gradient;
    context.fillRect(x + 0.28, y + 0.28, w - 0.56, h - 0.56);
    this.paintJoints(context, x, y, w, h);
  }

  /** A wall is made of slabs. */
  private paintJoints(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
    const along = w >= h;
    const count = Math.max(1, Math.round((along ? w : h) / 3));
    context.strokeStyle = withAlpha(this.palette.wall[2], 0.55);
    context.lineWidth = 0.1;
    context.beginPath();
    for (let joint = 1; joint < count; joint++) {
      const at = (joint / count) * (along ? w : h);
      context.moveTo(along ? x + at : x + 0.28, along ? y + 0.28 : y + at);
      context.lineTo(along ? x + at : x + w - 0.28, along ? y + h - 0.28 : y + at);
    }
    context.stroke();
  }

  private paintPillar(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
    const [rim, lit, dim] = this.palette.pillar;
    const disc = (size: number) => {
      context.beginPath();
      context.arc(x, y, size, 0, 7);
      context.fill();
    };
    context.fillStyle = rim;
    disc(radius);
    const gradient = context.createRadialGradient(x - radius * 0.4, y + radius * 0.45, radius * 0.1, x, y, radius);
    gradient.addColorStop(0, lit);
    gradient.addColorStop(1, dim);
    context.fillStyle = gradient;
    disc(radius - 0.18);
    context.strokeStyle = withAlpha(rim, 0.6);
    context.lineWidth = 0.12;
    context.beginPath();
    context.arc(x, y, radius * 0.55, 0, 7);
    context.stroke();
    context.fillStyle = withAlpha(rim, 0.75);
    disc(Math.min(0.35, radius * 0.16));
  }
}

/** Multiples of `step` in a range. */
function each(from: number, to: number, step: number, visit: (at: number) => void): void {
  for (let at = Math.floor(from / step) * step; at < to; at += step) visit(at);
}

/** Four numbers from 0 to 1 that are always the same for a place. */
function dice(x: number, y: number): [number, number, number, number] {
  let seed = (Math.round(x * 8) * 374761393 + Math.round(y * 8) * 668265263) | 0;
  const roll = () => {
    seed = Math.imul(seed ^ (seed >>> 15), 2246822519);
    seed = Math.imul(seed ^ (seed >>> 13), 3266489917);
    seed ^= seed >>> 16;
    return (seed >>> 0) / 2 ** 32;
  };
  return [roll(), roll(), roll(), roll()];
}

function speckleTile(palette: Palette): HTMLCanvasElement {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 128;
  const context = canvas.getContext("2d");
  if (!context) return canvas;
  for (let speck = 0; speck < 900; speck++) {
    const [a, b, c] = dice(speck * 1.5, 7);
    context.fillStyle = c < 0.5 ? palette.speckDark : palette.speckLight;
    context.fillRect(a * 128, b * 128, 1 + c, 1 + c);
  }
  return canvas;
}

/** `colour` is #rrggbb. */
export function withAlpha(colour: string, alpha: number): string {
  return `${colour}${Math.round(alpha * 255)
    .toString(16)
    .padStart(2, "0")}`;
}

/** Between two colours #rrggbb; `share` of the second. */
export function mix(one: string, other: string, share: number): string {
  const part = (colour: string, at: number) => parseInt(colour.slice(at, at + 2), 16);
  const mixed = [1, 3, 5].map((at) => Math.round(part(one, at) * (1 - share) + part(other, at) * share));
  return `#${mixed.map((value) => value.toString(16).padStart(2, "0")).join("")}`;
}
