// The mouse aims, its button fires.

import type { Controls, Wish } from "./controls";

export class Mouse {
  readonly wish: Wish = { throttle: 0, turn: 0, trigger: false };

  constructor(controls: Controls, canvas: HTMLCanvasElement) {
    const aim = (event: PointerEvent) => {
      if (event.pointerType !== "touch") controls.aimAt({ by: "point", x: event.clientX, y: event.clientY });
    };
    canvas.addEventListener("pointermove", aim);
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch" || event.button !== 0) return;
      aim(event);
      this.wish.trigger = true;
      controls.pull();
    });
    addEventListener("pointerup", (event) => {
      if (event.pointerType !== "touch") this.wish.trigger = false;
    });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  }
}
