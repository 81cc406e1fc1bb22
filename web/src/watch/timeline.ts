// The time line: where the picture is, who died when, and what the followed player's client had to correct.

import { colourOf } from "../draw/palette";
import { make } from "../page/dom";
import { clock } from "../page/words";
import type { Corrections, Mark } from "./recorded";

/** Pixels around a pointer in which a mark is meant. */
const NEAR = 6;
/** Lines that are told of marks that lie close together. */
const LINES = 4;
/** Milliseconds from one painting of marks to the next: while a file is read, they change all the time. */
const PAINT_EVERY = 100;

export class Timeline {
  readonly element = make("div", "line");
  /** Whether somebody holds on to it: time stands then. */
  held = false;
  private readonly canvas = make("canvas");
  private readonly fill = make("i", "fill");
  private readonly head = make("i", "head");
  private readonly bubble = make("div", "bubble");
  private length = 0;
  private painted = "";
  private paintedAt = -Infinity;
  private pointed = NaN;
  private followed: number | undefined;

  constructor(
    private readonly marks: readonly Mark[],
    private readonly seek: (at: number) => void,
  ) {
    const { element } = this;
    element.append(this.canvas, make("i", "rail"), this.fill, this.head, this.bubble);
    element.tabIndex = 0;
    element.role = "slider";
    element.ariaLabel = "Time. Arrows go by a second, Home and End to the ends.";
    element.ariaValueMin = "0";
    this.canvas.ariaHidden = "true";
    this.listen();
  }

  /** `now` and `length` are milliseconds; `followed` is whose corrections are shown. */
  frame(now: number, length: number, followed: number | undefined): void {
    const { element } = this;
    this.length = length;
    const share = length > 0 ? now / length : 0;
    this.fill.style.transform = `scaleX(${share})`;
    this.head.style.left = `${share * 100}%`;
    const said = `${clock(now)} of ${clock(length)}`;
    if (element.ariaValueText !== said) {
      element.ariaValueMax = String(Math.round(length / 1_000));
      element.ariaValueNow = String(Math.round(now / 1_000));
      element.ariaValueText = said;
    }
    const key = [this.marks.length, length, followed, element.clientWidth].join();
    if (key === this.painted || performance.now() - this.paintedAt < PAINT_EVERY) return;
    [this.painted, this.paintedAt] = [key, performance.now()];
    this.paint(followed);
  }

  /** Colours are others, or somebody else is followed. */
  repaint(): void {
    this.painted = "";
  }

  private listen(): void {
    const { element } = this;
    const at = (event: PointerEvent) => {
      const box = element.getBoundingClientRect();
      return Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * this.length;
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.held = true;
      element.setPointerCapture(event.pointerId);
      this.seek(at(event));
    });
    element.addEventListener("pointermove", (event) => {
      this.point(at(event));
      if (this.held) this.seek(at(event));
    });
    for (const over of ["pointerup", "pointercancel", "lostpointercapture"]) {
      element.addEventListener(over, () => (this.held = false));
    }
    element.addEventListener("pointerleave", () => this.point(NaN));
  }

  /** Says what is there. */
  private point(at: number): void {
    this.pointed = at;
    const shown = Number.isFinite(at) && this.length > 0;
    this.bubble.classList.toggle("shown", shown);
    if (!shown) return;
    const near = (NEAR / Math.max(1, this.element.clientWidth)) * this.length;
    const marks = this.shown().filter((mark) => Math.abs(mark.at_ms - at) <= near);
    // Whom one follows comes first.
    const rank = (mark: Mark) => (this.concerns(mark) ? 0 : near) + Math.abs(mark.at_ms - at);
    marks.sort((one, other) => rank(one) - rank(other));
    const lines = marks.slice(0, LINES).map((mark) => make("p", mark.type, `${clock(mark.at_ms)} ${describe(mark)}`));
    if (marks.length > LINES) lines.push(make("p", "", `and ${marks.length - LINES} more`));
    this.bubble.replaceChildren(...(lines.length > 0 ? lines : [make("p", "number", clock(at))]));
    const room = this.element.clientWidth - this.bubble.offsetWidth;
    const left = (at / this.length) * this.element.clientWidth - this.bubble.offsetWidth / 2;
    this.bubble.style.left = `${Math.max(0, Math.min(room, left))}px`;
  }

  private shown(): Mark[] {
    return this.marks.filter((mark) => mark.type !== "report" || mark.fighter === this.followed);
  }

  private concerns(mark: Mark): boolean {
    return mark.type !== "kill" || this.followed === undefined || mark.by === this.followed || mark.fighter === this.followed;
  }

  private paint(followed: number | undefined): void {
    this.followed = followed;
    const { canvas, element } = this;
    const ratio = Math.min(2, devicePixelRatio || 1);
    const [width, height] = [element.clientWidth, element.clientHeight];
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    const context = canvas.getContext("2d");
    if (!context || this.length <= 0) return;
    context.scale(ratio, ratio);
    const style = getComputedStyle(element);
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const middle = height / 2;
    for (const mark of this.shown()) {
      const x = (mark.at_ms / this.length) * width;
      if (mark.type === "kill") {
        const [killed, died] = [mark.by === followed, mark.fighter === followed];
        const concerned = this.concerns(mark);
        context.globalAlpha = concerned ? 1 : 0.35;
        context.fillStyle = died ? colour("--bad") : killed ? colour("--good") : followed === undefined ? colourOf(mark.by, false) : colour("--quiet");
        const tall = concerned ? middle - 5 : middle - 9;
        context.fillRect(x - 1, middle - 4 - tall, concerned ? 2 : 1, tall);
      } else if (mark.type === "report") {
        context.globalAlpha = 1;
        context.fillStyle = mark.snapped > 0 ? colour("--bad") : colour("--predicted");
        context.beginPath();
        const y = middle + 11;
        for (const [dx, dy] of [[0, -4.5], [4, 0], [0, 4.5], [-4, 0]] as const) context.lineTo(x + dx, y + dy);
        context.fill();
      } else {
        context.globalAlpha = 1;
        context.fillStyle = colour("--accent");
        context.fillRect(x - 1, 0, 2, height);
      }
    }
    context.globalAlpha = 1;
    if (Number.isFinite(this.pointed)) this.point(this.pointed);
  }
}

/** "3 collision, 1 late input". */
export function list(corrections: Corrections): string {
  return corrections.map(([cause, count]) => `${count} ${cause.replace("_", " ")}`).join(", ");
}

function describe(mark: Mark): string {
  if (mark.type === "kill" && mark.by === mark.fighter) return `${mark.name} left in combat`;
  if (mark.type === "kill") return `${mark.by_name} destroyed ${mark.name}`;
  if (mark.type === "round") return mark.winner === null ? `round ${mark.number} was a draw` : `${mark.winner} won round ${mark.number}`;
  if (mark.type === "recovered") return "the server ended without a word, and another went on";
  const snapped = mark.snapped > 0 ? `; ${mark.snapped} snapped` : "";
  return `${mark.name} had to correct: ${list(mark.corrections)}${snapped}`;
}

