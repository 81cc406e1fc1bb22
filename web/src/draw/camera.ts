// Where the picture looks. The own tank is drawn where it is; only the picture's centre lags, so following
// smoothly never makes the tank itself late.

export interface Insets {
  top: number;
  right: number;
  bottom: number;
}

/** Metres that a tile of the ground is wide. The scale is such that it has whole pixels, or there would be seams. */
export const TILE = 16;
/** Metres that the longer side of the picture shows, and the least that the shorter one does: a phone sees as far. */
const LONG_SIDE = 70;
const SHORT_SIDE = 32;
/** Pixels of the page per metre at least: a tank that is smaller is not recognised. */
const LEAST_SCALE = 10.5;
/** Metres outside the arena that may be seen: in a corner, a tank is not to be under the page's own corners. */
const BEYOND = 8;
/** Metres that the picture is ahead of the tank towards where it aims. */
const LOOK_AHEAD = 3.5;
/** Share of the way that is left after a second. */
const LAG = 0.0012;
/** Metres. From further away it does not glide: a respawn is a cut. */
const CUT = 30;

export class Camera {
  x = 0;
  y = 0;
  /** Pixels of the canvas per metre. */
  scale = 16;
  width = 1;
  height = 1;
  /** Shows the whole arena, however small tanks are then. */
  wide = false;
  /** Where the middle of the picture is on the canvas, whole pixels: tiles of the ground have no seams then. */
  private originX = 0;
  private originY = 0;
  private shake = 0;
  private centreX = 0.5;
  private centreY = 0.5;
  /** Left free by panels, pixels of the canvas. */
  private freeWidth = 1;
  private freeHeight = 1;

  constructor(private readonly arena: readonly [number, number]) {}

  /** `ratio` is canvas pixels per pixel of the page; `insets` are covered by panels, in the page's pixels. */
  resize(width: number, height: number, ratio: number, insets: Insets): void {
    this.width = width;
    this.height = height;
    const [w, h] = [Math.max(1, width - insets.right * ratio), Math.max(1, height - (insets.top + insets.bottom) * ratio)];
    [this.freeWidth, this.freeHeight] = [w, h];
    this.centreX = w / 2 / width;
    this.centreY = (insets.top * ratio + h / 2) / height;
    const near = Math.max(Math.min(Math.max(w, h) / LONG_SIDE, Math.min(w, h) / SHORT_SIDE), LEAST_SCALE * ratio);
    const whole = Math.min(w / (this.arena[0] + 4), h / (this.arena[1] + 4));
    // A tile has whole pixels: rounded down where everything must fit, up elsewhere.
    this.scale = this.wide ? Math.max(1, Math.floor(TILE * whole)) / TILE : Math.ceil(TILE * Math.max(near, whole)) / TILE;
  }

  /** Looks at once at a point. */
  cutTo(x: number, y: number): void {
    [this.x, this.y] = this.within(x, y);
    this.place();
  }

  follow(x: number, y: number, aim: number, seconds: number): void {
    const [toX, toY] = this.within(x + Math.cos(aim) * LOOK_AHEAD, y + Math.sin(aim) * LOOK_AHEAD);
    if (Math.hypot(toX - this.x, toY - this.y) > CUT) return this.cutTo(x, y);
    const share = 1 - LAG ** Math.min(seconds, 0.1);
    this.x += (toX - this.x) * share;
    this.y += (toY - this.y) * share;
    this.shake = Math.max(0, this.shake - seconds * 2.2);
    this.place();
  }

  /** 1 is as hard as it gets. */
  jolt(strength: number): void {
    this.shake = Math.min(1, Math.max(this.shake, strength));
  }

  toCanvasX(x: number): number {
    return this.originX + x * this.scale;
  }

  toCanvasY(y: number): number {
    return this.originY - y * this.scale;
  }

  toWorld(canvasX: number, canvasY: number): [x: number, y: number] {
    return [(canvasX - this.originX) / this.scale, (this.originY - canvasY) / this.scale];
  }

  sees(x: number, y: number, margin: number): boolean {
    const [left, top, reach] = [this.toCanvasX(x), this.toCanvasY(y), margin * this.scale];
    return left > -reach && left < this.width + reach && top > -reach && top < this.height + reach;
  }

  private place(): void {
    const wobble = () => (Math.random() - 0.5) * this.shake * this.shake * this.scale * 0.9;
    this.originX = Math.round(this.width * this.centreX - this.x * this.scale + wobble());
    this.originY = Math.round(this.height * this.centreY + this.y * this.scale + wobble());
  }

  private within(x: number, y: number): [number, number] {
    // The part behind a panel may be outside.
    const clamp = (at: number, size: number, shown: number) => {
      const room = Math.max(0, size / 2 + BEYOND - shown / this.scale / 2);
      return Math.min(room, Math.max(-room, at));
    };
    return [clamp(x, this.arena[0], this.freeWidth), clamp(y, this.arena[1], this.freeHeight)];
  }
}
