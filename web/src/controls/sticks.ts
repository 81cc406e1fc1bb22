// Two sticks on the glass: the left thumb drives, the right one aims and fires. Each begins where the thumb comes down. And a
// button for rockets.

import type { Controls, Wish } from "./controls";

/** Pixels of the page: the reach of a stick, and the share of it that is no wish yet. */
const REACH = 56;
const DEAD = 0.18;
/** From here on the right stick fires; before, it only aims. */
const FIRES = 0.5;
const HALF = 64;
/** Room for a stick's label. */
const ABOVE = 26;

interface Touch {
  pointer: number;
  startX: number;
  startY: number;
  x: number;
  y: number;
}

export class Sticks {
  readonly wish: Wish = { throttle: 0, turn: 0, trigger: false };
  private left: Touch | undefined;
  private right: Touch | undefined;

  constructor(
    private readonly controls: Controls,
    canvas: HTMLCanvasElement,
    private readonly shown: HTMLElement,
  ) {
    // With a coarse pointer the sticks are shown at once, otherwise from the first touch on.
    if (matchMedia("(pointer: coarse)").matches) shown.hidden = false;
    shown.querySelector("button")?.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      controls.launch();
    });
    canvas.addEventListener("pointerdown", (event) => this.start(event, canvas));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const end of ["pointerup", "pointercancel"] as const) {
      canvas.addEventListener(end, (event) => this.end(event));
    }
  }

  release(): void {
    this.left = this.right = undefined;
    this.show();
  }

  private start(event: PointerEvent, canvas: HTMLCanvasElement): void {
    if (event.pointerType !== "touch") return;
    this.shown.hidden = false;
    canvas.setPointerCapture(event.pointerId);
    const { clientX: x, clientY: y } = event;
    const touch = { pointer: event.pointerId, startX: x, startY: y, x, y };
    if (x < canvas.clientWidth / 2) this.left ??= touch;
    else this.right ??= touch;
    this.apply();
  }

  private move(event: PointerEvent): void {
    const touch = [this.left, this.right].find((touch) => touch?.pointer === event.pointerId);
    if (!touch) return;
    [touch.x, touch.y] = [event.clientX, event.clientY];
    this.apply();
  }

  private end(event: PointerEvent): void {
    if (this.left?.pointer === event.pointerId) this.left = undefined;
    if (this.right?.pointer === event.pointerId) {
      const [x, y] = lean(this.right);
      this.right = undefined;
      // A tap fires where the turret looks.
      if (Math.hypot(x, y) < DEAD) this.controls.pull();
    }
    this.apply();
  }

  private apply(): void {
    const [x, y] = lean(this.left);
    this.wish.throttle = Math.abs(y) > DEAD ? -y : 0;
    this.wish.turn = Math.abs(x) > DEAD ? -x : 0;
    const [aimX, aimY] = lean(this.right);
    const strength = Math.hypot(aimX, aimY);
    if (strength > DEAD) this.controls.aimAt({ by: "angle", angle: Math.atan2(-aimY, aimX) });
    const pulls = strength > FIRES;
    if (pulls && !this.wish.trigger) this.controls.pull();
    this.wish.trigger = pulls;
    this.controls.changed();
    this.show();
  }

  private show(): void {
    for (const [index, touch] of [this.left, this.right].entries()) {
      const stick = this.shown.children[index];
      const knob = stick?.firstElementChild;
      if (!(stick instanceof HTMLElement) || !(knob instanceof HTMLElement)) continue;
      const [x, y] = lean(touch);
      knob.style.transform = `translate(${x * REACH}px, ${y * REACH}px)`;
      // Under the thumb while it is down; at its place otherwise.
      stick.style.transform = "";
      if (!touch) continue;
      const box = stick.getBoundingClientRect();
      const [middleX, middleY] = besideGauge(touch, index === 0);
      stick.style.transform = `translate(${middleX - box.left - HALF}px, ${middleY - box.top - HALF}px)`;
    }
  }
}

/** Where a stick is drawn: under the thumb, but never over the own hit points. */
function besideGauge({ startX, startY }: Touch, isLeft: boolean): [x: number, y: number] {
  const gauge = document.getElementById("own")?.getBoundingClientRect();
  const apart = gauge && (startY - HALF > gauge.bottom || startY + HALF < gauge.top || startX - HALF > gauge.right || startX + HALF < gauge.left);
  if (!gauge || apart) return [startX, startY];
  // The gauge is at the top of an upright phone, between the sticks otherwise.
  if (gauge.bottom < innerHeight / 2) return [startX, gauge.bottom + HALF + ABOVE];
  return [isLeft ? gauge.left - HALF : gauge.right + HALF, startY];
}

/** -1 to 1 along the page's axes, no longer than 1. */
function lean(touch: Touch | undefined): [x: number, y: number] {
  if (!touch) return [0, 0];
  const [x, y] = [(touch.x - touch.startX) / REACH, (touch.y - touch.startY) / REACH];
  const length = Math.max(1, Math.hypot(x, y));
  return [x / length, y / length];
}
