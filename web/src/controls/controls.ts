// The player's wishes, from keyboard, mouse, touch and gamepad together. Driving and firing go out where the event is
// handled: nothing waits for a frame.

import { Gamepads } from "./gamepads";
import { Keyboard } from "./keyboard";
import { Mouse } from "./mouse";
import { Sticks } from "./sticks";

/** The tank that takes the wishes. */
export interface Driven {
  /** -1 to 1, ahead and to the left positive. */
  drive(throttle: number, turn: number): void;
  fire(): void;
  /** The rocket button was pressed once. */
  launch(): void;
  /** Where the own tank is, on the page's terms. */
  heading(): number;
  bearingTo(pageX: number, pageY: number): number;
}

/** A device that drives and fires. */
export interface Wish {
  throttle: number;
  turn: number;
  trigger: boolean;
}

export type Aim = { by: "heading" } | { by: "point"; x: number; y: number } | { by: "angle"; angle: number };

/** Steps of the wire: smaller differences are none. */
const STEPS = 16;

export class Controls {
  private readonly wishes: Wish[] = [];
  private readonly keyboard: Keyboard;
  private readonly mouse: Mouse;
  private readonly sticks: Sticks;
  private readonly gamepads: Gamepads;
  private aiming: Aim = { by: "heading" };
  private sent = [0, 0];
  private driven: Driven | undefined;

  constructor(canvas: HTMLCanvasElement, sticks: HTMLElement) {
    this.keyboard = new Keyboard(this);
    this.mouse = new Mouse(this, canvas);
    this.sticks = new Sticks(this, canvas, sticks);
    this.gamepads = new Gamepads(this);
    this.wishes.push(this.keyboard.wish, this.mouse.wish, this.sticks.wish, this.gamepads.wish);
    addEventListener("blur", () => this.release());
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.release();
    });
  }

  /** The tank to drive, or none. */
  take(driven: Driven | undefined): void {
    this.release();
    this.driven = driven;
    this.sent = [0, 0];
    this.aiming = { by: "heading" };
  }

  get active(): boolean {
    return this.driven !== undefined;
  }

  /** Gamepads have no events for their sticks; a trigger that is held fires as soon as the gun is ready. */
  poll(seconds: number, gunReady: boolean): void {
    this.gamepads.poll();
    this.keyboard.poll(seconds);
    if (gunReady && this.wishes.some((wish) => wish.trigger)) this.driven?.fire();
  }

  /** A device has changed its wish. */
  changed(): void {
    const sum = (of: (wish: Wish) => number) => {
      const total = this.wishes.reduce((total, wish) => total + of(wish), 0);
      return Math.round(Math.max(-1, Math.min(1, total)) * STEPS) / STEPS;
    };
    const [throttle, turn] = [sum((wish) => wish.throttle), sum((wish) => wish.turn)];
    if (throttle === this.sent[0] && turn === this.sent[1]) return;
    this.sent = [throttle, turn];
    this.driven?.drive(throttle, turn);
  }

  pull(): void {
    this.driven?.fire();
  }

  /** One press of the rocket button: also one that is shorter than a frame. */
  launch(): void {
    this.driven?.launch();
  }

  aimAt(aim: Aim): void {
    this.aiming = aim;
  }

  /** Turns the turret from where it is. */
  nudge(radians: number): void {
    this.aiming = { by: "angle", angle: this.aim() + radians };
  }

  /** Radians to the left of east. */
  aim(): number {
    const { aiming, driven } = this;
    if (!driven) return 0;
    if (aiming.by === "angle") return aiming.angle;
    if (aiming.by === "point") return driven.bearingTo(aiming.x, aiming.y);
    return driven.heading();
  }

  release(): void {
    this.keyboard.release();
    for (const wish of this.wishes) [wish.throttle, wish.turn, wish.trigger] = [0, 0, false];
    this.sticks.release();
    this.changed();
  }
}
