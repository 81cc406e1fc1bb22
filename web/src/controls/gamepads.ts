// Gamepads of the standard layout: the left stick or the cross drives, the right stick aims, A or the right trigger fires, B or the left
// trigger launches a rocket.

import type { Controls, Wish } from "./controls";

const DEAD = 0.2;
const BUTTON = { a: 0, b: 1, left_shoulder: 4, shoulder: 5, left_trigger: 6, trigger: 7, up: 12, down: 13, left: 14, right: 15 } as const;

export class Gamepads {
  readonly wish: Wish = { throttle: 0, turn: 0, trigger: false };

  private launches = false;

  constructor(private readonly controls: Controls) {}

  poll(): void {
    const pad = navigator.getGamepads?.().find((pad) => pad?.mapping === "standard");
    if (!pad) return this.release();
    const axis = (index: number) => {
      const value = pad.axes[index] ?? 0;
      return Math.abs(value) > DEAD ? value : 0;
    };
    const pressed = (button: number) => pad.buttons[button]?.pressed === true;
    this.wish.throttle = Number(pressed(BUTTON.up)) - Number(pressed(BUTTON.down)) - axis(1);
    this.wish.turn = Number(pressed(BUTTON.left)) - Number(pressed(BUTTON.right)) - axis(0);
    const [aimX, aimY] = [pad.axes[2] ?? 0, pad.axes[3] ?? 0];
    if (Math.hypot(aimX, aimY) > 0.4) this.controls.aimAt({ by: "angle", angle: Math.atan2(-aimY, aimX) });
    const trigger = pressed(BUTTON.a) || pressed(BUTTON.shoulder) || pressed(BUTTON.trigger);
    if (trigger && !this.wish.trigger) this.controls.pull();
    this.wish.trigger = trigger;
    const launches = pressed(BUTTON.b) || pressed(BUTTON.left_shoulder) || pressed(BUTTON.left_trigger);
    if (launches && !this.launches) this.controls.launch();
    this.launches = launches;
    this.controls.changed();
  }

  /** Unplugged, or its battery is empty: the tank does not drive on. */
  private release(): void {
    const { wish } = this;
    this.launches = false;
    if (wish.throttle === 0 && wish.turn === 0 && !wish.trigger) return;
    [wish.throttle, wish.turn, wish.trigger] = [0, 0, false];
    this.controls.changed();
  }
}
