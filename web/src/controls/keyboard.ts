// WASD and arrows drive, Space fires, R launches a rocket, Q and E turn the turret without a mouse.

import type { Controls, Wish } from "./controls";

const AHEAD = ["KeyW", "ArrowUp"];
const BACK = ["KeyS", "ArrowDown"];
const LEFT = ["KeyA", "ArrowLeft"];
const RIGHT = ["KeyD", "ArrowRight"];
const FIRE = "Space";
const ROCKET = "KeyR";
const TURRET_LEFT = "KeyQ";
const TURRET_RIGHT = "KeyE";
/** Radians in a second. */
const TURRET_SPEED = 2.6;

export class Keyboard {
  readonly wish: Wish = { throttle: 0, turn: 0, trigger: false };
  private readonly down = new Set<string>();

  constructor(private readonly controls: Controls) {
    addEventListener("keydown", (event) => {
      if (!controls.active || event.ctrlKey || event.metaKey || event.altKey || belongsTo(event)) return;
      if (event.code.startsWith("Arrow") || event.code === FIRE) event.preventDefault();
      if (event.repeat) return;
      this.down.add(event.code);
      this.apply();
      if (event.code === FIRE) controls.pull();
      else if (event.code === ROCKET) controls.launch();
    });
    addEventListener("keyup", (event) => {
      if (this.down.delete(event.code)) this.apply();
    });
  }

  poll(seconds: number): void {
    const turn = this.any([TURRET_LEFT]) - this.any([TURRET_RIGHT]);
    if (turn !== 0) this.controls.nudge(turn * TURRET_SPEED * seconds);
  }

  release(): void {
    this.down.clear();
  }

  private apply(): void {
    this.wish.throttle = this.any(AHEAD) - this.any(BACK);
    this.wish.turn = this.any(LEFT) - this.any(RIGHT);
    this.wish.trigger = this.down.has(FIRE);
    this.controls.changed();
  }

  private any(codes: readonly string[]): number {
    return Number(codes.some((code) => this.down.has(code)));
  }
}

/** Whether the key means something where the focus is: letters to a text, arrows to a slider, Space to a button. */
export function belongsTo(event: KeyboardEvent): boolean {
  const { target } = event;
  if (target instanceof HTMLInputElement) {
    if (target.type === "range") return event.code.startsWith("Arrow");
    if (target.type === "checkbox") return event.code === FIRE;
    return true;
  }
  return target instanceof HTMLElement && target.closest("button, select, summary") !== null && event.code === FIRE;
}
