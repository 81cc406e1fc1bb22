// The mouse aims, its left button fires, its right one launches a rocket.

import type { Controls, Wish } from "./controls";

/** Bits of an event's `buttons`. */
const [LEFT, RIGHT] = [1, 2];

export class Mouse {
  readonly wish: Wish = { throttle: 0, turn: 0, trigger: false };

  constructor(controls: Controls, canvas: HTMLCanvasElement) {
    const aim = (event: PointerEvent) => {
      if (event.pointerType !== "touch") controls.aimAt({ by: "point", x: event.clientX, y: event.clientY });
    };
    // A button that goes down or up while another one is held is an event of motion.
    let held = 0;
    const press = (event: PointerEvent) => {
      aim(event);
      if (event.pointerType === "touch" || event.button < 0) return;
      const fresh = event.buttons & ~held;
      held = event.buttons;
      this.wish.trigger = (held & LEFT) !== 0;
      if (fresh & LEFT) controls.pull();
      if (fresh & RIGHT) controls.launch();
    };
    canvas.addEventListener("pointermove", press);
    canvas.addEventListener("pointerdown", press);
    addEventListener("pointerup", (event) => {
      if (event.pointerType === "touch") return;
      held = event.buttons;
      this.wish.trigger = false;
    });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }
}
