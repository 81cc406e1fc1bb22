// Marks on a tile of the ground: the tile's picture with what was driven over it. It is painted once per mark and not once
// per frame, so a hundred tanks' tracks cost as much as none.

/** Milliseconds from one fading to the next, and how much of the clean tile shines through each time. Often and little
 *  would never end: what is below half of a level of brightness is rounded away. */
const FADE_EVERY = 1_200;
const FADE = 0.2;
/** Milliseconds after which nothing is left to be seen. */
const LASTS = 16_000;

export class MarkedTile {
  readonly canvas: HTMLCanvasElement;
  private readonly context: CanvasRenderingContext2D | null;
  private fadedAt: number;
  private markedAt: number;

  constructor(
    private readonly clean: HTMLCanvasElement,
    now: number,
  ) {
    this.canvas = document.createElement("canvas");
    this.canvas.width = clean.width;
    this.canvas.height = clean.height;
    this.context = this.canvas.getContext("2d", { alpha: false });
    this.context?.drawImage(clean, 0, 0);
    // Not all tiles in the same frame.
    this.fadedAt = now - Math.random() * FADE_EVERY;
    this.markedAt = now;
  }

  /** `lines` are x, y, x, y in pixels of the tile. */
  mark(lines: readonly number[], width: number, colour: string, now: number): void {
    const { context } = this;
    if (!context) return;
    this.markedAt = now;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (let at = 0; at + 3 < lines.length; at += 4) {
      context.moveTo(lines[at] ?? 0, lines[at + 1] ?? 0);
      context.lineTo(lines[at + 2] ?? 0, lines[at + 3] ?? 0);
    }
    context.stroke();
  }

  /** Gives whether there is still something to be seen. */
  fade(now: number): boolean {
    if (now - this.markedAt > LASTS) return false;
    if (now - this.fadedAt < FADE_EVERY || !this.context) return true;
    this.fadedAt = now;
    this.context.globalAlpha = FADE;
    this.context.drawImage(this.clean, 0, 0);
    this.context.globalAlpha = 1;
    return true;
  }
}
