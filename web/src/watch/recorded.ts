// A recorded match in types: the wasm that plays it back. What it does: crates/tanks-theatre/API.md.

import { BODY, HEADER, TANK } from "../client";
import type { Cause, Point, Site } from "../client";
import init, { Theatre } from "../wasm/tanks_theatre.js";

export type Corrections = [Cause, number][];

/** What happens, when the picture is there. */
export type Seen =
  | { type: "joined"; fighter: number; name: string }
  | { type: "left"; fighter: number }
  | { type: "fired"; shooter: number; aim: number; from: Point; to: Point }
  | { type: "rocket"; id: number; life: "born" | "ended"; at: Point; heading: number }
  | { type: "hit"; shooter: number; target: number }
  | { type: "damage"; target: number; amount: number }
  | { type: "death"; fighter: number; by: number }
  | { type: "respawn"; fighter: number }
  | { type: "round"; number: number; over: boolean; winner: number | null }
  | { type: "report"; fighter: number; corrections: Corrections; snapped: number };

/** What the time line shows. */
export type Mark =
  | { type: "kill"; at_ms: number; fighter: number; name: string; by: number; by_name: string }
  | { type: "report"; at_ms: number; fighter: number; name: string; corrections: Corrections; snapped: number }
  | { type: "round"; at_ms: number; number: number; winner: string | null }
  | { type: "recovered"; at_ms: number };

/** A player or a machine, by its key: see `fighter.ts`. */
export interface Standing {
  fighter: number;
  name: string;
  hp: number;
  kills: number;
  deaths: number;
  shots: number;
  hits: number;
}

export interface About {
  room: string;
  started: number;
  tick_ms: number;
  arena: Site["arena"];
  damage: string | null;
  differs_ms: number | null;
  marks_left_out: number;
}

/** Where the view has what only a recording has. */
const MORE = { length: 48, read: 49, playing: 50, speed: 51 } as const;
/** Milliseconds of a frame that may go into reading on. */
const READING = 6;

let memory: WebAssembly.Memory | undefined;

export class Recorded {
  readonly about: About;
  readonly marks: Mark[] = [];
  /** Whether something is left to be read. */
  reading = true;
  private view = new Float64Array(64);

  /** Throws in words when it is no recording. */
  static async open(bytes: Uint8Array): Promise<Recorded> {
    memory ??= (await init()).memory;
    return new Recorded(new Theatre(bytes), memory);
  }

  private constructor(
    private readonly theatre: Theatre,
    private readonly memory: WebAssembly.Memory,
  ) {
    this.readOn();
    this.about = JSON.parse(theatre.about()) as About;
    this.frame(0);
  }

  free(): void {
    this.theatre.free();
  }

  /** `passed` milliseconds on the wall: the picture is that of now. */
  frame(passed: number): void {
    if (this.reading) this.readOn();
    this.theatre.frame(passed);
    this.view = new Float64Array(this.memory.buffer, this.theatre.view_ptr(), this.theatre.view_len());
  }

  seek(at: number): void {
    this.theatre.seek(at);
  }

  play(on: boolean): void {
    this.theatre.play(on);
  }

  setSpeed(speed: number): void {
    this.theatre.set_speed(speed);
  }

  events(): Seen[] {
    return this.at(HEADER.events) > 0 ? (JSON.parse(this.theatre.poll_events()) as Seen[]) : [];
  }

  /** Players, then machines. */
  fighters(): Standing[] {
    return JSON.parse(this.theatre.fighters()) as Standing[];
  }

  /** Milliseconds from the beginning; so far as it was read. */
  get now(): number {
    return this.at(HEADER.now);
  }

  get length(): number {
    return this.at(MORE.length);
  }

  /** Share of the file that was read. */
  get read(): number {
    return this.at(MORE.read);
  }

  get playing(): boolean {
    return this.at(MORE.playing) === 1;
  }

  get speed(): number {
    return this.at(MORE.speed);
  }

  /** As a live match gives it to a `Picture`. */
  at(index: number): number {
    return this.view[index] ?? NaN;
  }

  *tanks(): Generator<number> {
    const [count, start] = [this.at(HEADER.tankCount), this.at(HEADER.tankStart)];
    for (let tank = 0; tank < count; tank++) yield start + tank * TANK.size;
  }

  *bodies(): Generator<number> {
    const [count, start] = [this.at(HEADER.bodyCount), this.at(HEADER.bodyStart)];
    for (let body = 0; body < count; body++) yield start + body * BODY.size;
  }

  *path(): Generator<number> {}

  private readOn(): void {
    this.reading = this.theatre.index_some(READING);
    this.marks.push(...(JSON.parse(this.theatre.marks(this.marks.length)) as Mark[]));
    if (!this.reading) Object.assign(this.about ?? {}, JSON.parse(this.theatre.about()));
  }
}
