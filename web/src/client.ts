// The wasm client in types. What it does and the layout of its view: crates/tanks-web/API.md.

import init, { TankClient, break_down, golden_hash, on_panic } from "./wasm/tanks_web.js";

export { break_down, golden_hash };

/** What /config.json says, as far as a page draws it. */
export interface Site {
  version: string;
  protocol: number;
  cadence_us: number;
  default_room: string;
  room_capacity: number;
  auth: "guests" | "tokens";
  quic: { port: number; certificate_hashes: string[] };
  websocket: string;
  arena: { size: [number, number]; obstacles: Obstacle[] };
}
export type Obstacle =
  | { block: { min: [number, number]; max: [number, number] } }
  | { pillar: { center: [number, number]; radius: number } };

export type Switch = "prediction" | "reconciliation" | "smoothing" | "interpolation" | "subtick";
export type Way = "auto" | "webtransport" | "websocket";
export type StateName =
  | "idle"
  | "connecting"
  | "login_pending"
  | "logged_in"
  | "reconnecting"
  | "failed"
  | "timed_out"
  | "logged_out";
export const STATES: readonly StateName[] = [
  "idle",
  "connecting",
  "login_pending",
  "logged_in",
  "reconnecting",
  "failed",
  "timed_out",
  "logged_out",
];

/** One direction of the bad network; what is left out is none. Shares are from 0 to 1. */
export interface LinkSettings {
  delay_ms?: number;
  jitter_ms?: number;
  loss?: number;
  burst?: number;
  reorder?: number;
  duplicate?: number;
  rate_kbit?: number;
}

export type Point = [x: number, y: number];
export type GameEvent =
  | { type: "state"; state: StateName; text: string; why: string | null }
  | { type: "transport"; kind: "webtransport" | "websocket"; why: string }
  | { type: "restarted"; why: string }
  | { type: "joined"; fighter: number; name: string; own: boolean }
  | { type: "left"; fighter: number }
  | { type: "closing"; within_ms: number }
  | { type: "fired"; shooter: number; own: boolean; tick: number; aim: number; from: Point; to: Point; in_ms: number }
  | { type: "hit"; shooter: number; target: number; tick: number; in_ms: number }
  | { type: "damage"; target: number; amount: number; hp: number; tick: number }
  | { type: "death"; fighter: number; by: number; tick: number }
  | { type: "respawn"; fighter: number; tick: number }
  | { type: "round"; number: number; over: boolean; winner: number | null; ends_ms: number }
  | {
      type: "rocket";
      id: number;
      life: "born" | "ended";
      certainty: "predicted" | "confirmed" | "revoked";
      shooter: number | null;
      own: boolean;
      at: Point;
      heading: number;
      cause: Cause | null;
    }
  | { type: "rejected"; tick: number; why: string }
  | { type: "error"; text: string }
  | { type: "missed"; count: number };

/** A player or a machine, by its key: see `fighter.ts`. */
export interface Standing {
  fighter: number;
  name: string;
  own: boolean;
  hp: number | null;
  kills: number;
  deaths: number;
}

/** What is not known is null. */
export interface Sample {
  at_ms: number;
  rtt_ms: number | null;
  jitter_ms: number | null;
  lead_ms: number | null;
  margin_ms: number | null;
  remote_delay_ms: number | null;
  offset_m: number;
  pending_ticks: number;
  corrections: number;
  made_up_ticks: number;
  snapshots: number;
  bytes_up: number;
  bytes_down: number;
  players: number;
}
export type Cause =
  | "resync"
  | "teleport"
  | "respawn"
  | "death"
  | "params"
  | "world"
  | "other_input"
  | "collision"
  | "lost_input"
  | "late_input"
  | "unexplained";
export type Pose = [x: number, y: number, heading: number];
export interface Correction {
  at_ms: number;
  tick: number;
  cause: Cause;
  distance: number;
  angle: number;
  outcome: "unchanged" | "negligible" | "eased" | "snapped";
  replayed_ticks: number;
  authoritative: Pose;
  before: Pose;
  after: Pose;
}
export type BodyName = "tank" | "rocket" | "crate" | "platform";
type Counts<K extends string> = Record<K, number>;
export interface Diagnostics {
  version: string;
  state: StateName;
  transport: string | null;
  transport_why: string | null;
  sample: Sample;
  causes: [Cause, number][];
  outcomes: Counts<"unchanged" | "negligible" | "eased" | "snapped">;
  recent: Correction[];
  group: {
    causes: [Cause, number][];
    recent: { body: number; kind: BodyName; correction: Correction }[];
  };
  rockets: Counts<"predicted" | "confirmed" | "revoked">;
  own_ticks: Counts<"as_sent" | "made_up" | "late" | "lost">;
  hold_ratio: number;
  remotes: Counts<"exact" | "interpolated" | "extrapolated" | "held" | "eased" | "snapped" | "held_ratio">;
  prediction: Counts<"accepted" | "mispredicted" | "resyncs" | "starved" | "stalled_ticks" | "delayed_changes">;
  traffic: Counts<
    | "datagrams_up"
    | "datagrams_down"
    | "datagram_bytes_up"
    | "datagram_bytes_down"
    | "stream_bytes_up"
    | "stream_bytes_down"
    | "datagrams_dropped"
  >;
  client: Counts<
    | "snapshots"
    | "stale"
    | "early"
    | "malformed"
    | "missing_baseline"
    | "check_failed"
    | "full_requests"
    | "inputs"
    | "eager_inputs"
    | "events_dropped"
  >;
}
export interface Export {
  now: Diagnostics;
  corrections: Correction[];
  samples: Sample[];
}

/** Where numbers are in the view's header. A pose is three: x, y, heading. */
export const HEADER = {
  layout: 0,
  now: 1,
  state: 2,
  own: 3,
  tankCount: 4,
  tankStart: 5,
  pointCount: 6,
  pointStart: 7,
  flags: 8,
  hp: 9,
  drawn: 10,
  visible: 13,
  predicted: 16,
  authoritative: 19,
  offset: 22,
  gunLeft: 25,
  gunCooldown: 26,
  respawnIn: 27,
  throttle: 28,
  turn: 29,
  serverTime: 30,
  predictionTime: 31,
  renderTime: 32,
  authoritativeTick: 33,
  openTick: 34,
  pendingTicks: 35,
  roundTrip: 36,
  jitter: 37,
  lead: 38,
  margin: 39,
  remoteDelay: 40,
  clockRate: 41,
  corrections: 42,
  lastCorrection: 43,
  lastCorrectionAge: 44,
  bytesUp: 45,
  bytesDown: 46,
  events: 47,
  bodyCount: 52,
  bodyStart: 53,
  reloadLeft: 54,
  reload: 55,
} as const;

/** Bits of `HEADER.flags`. */
export const OWN = { playing: 1, predicting: 2, alive: 4, gunReady: 8, starved: 16 } as const;

/** Where numbers are in a tank's row of the view. */
export const TANK = {
  fighter: 0,
  x: 1,
  y: 2,
  heading: 3,
  speed: 4,
  hp: 5,
  flags: 6,
  aim: 7,
  shotAge: 8,
  kills: 9,
  deaths: 10,
  toldX: 11,
  toldY: 12,
  toldHeading: 13,
  toldAge: 14,
  carrier: 15,
  size: 16,
} as const;

/** Where numbers are in the row of another body. */
export const BODY = {
  id: 0,
  kind: 1,
  x: 2,
  y: 3,
  heading: 4,
  flags: 5,
  owner: 6,
  lag: 7,
  carrier: 8,
  toldX: 9,
  toldY: 10,
  toldHeading: 11,
  size: 12,
} as const;

/** `BODY.kind`. */
export const KIND = { rocket: 1, crate: 2, platform: 3 } as const;

/** Bits of `TANK.flags` and `BODY.flags`. */
export const FLAG = { own: 1, alive: 2, guessed: 4, held: 8, between: 16, predicted: 32, leaving: 64 } as const;

/** Where numbers are in a point of the path. */
export const POINT = { x: 0, y: 1, heading: 2, tick: 3, size: 4 } as const;

/** Why `fire` ordered nothing. */
export const NOT_FIRED = { notIn: -1, coolingDown: -2, dead: -3, full: -4, roundOver: -5 } as const;

const LAYOUT = 3;
let wasm: WebAssembly.Memory | undefined;

/** Bytes of memory that the wasm has. */
export function memory(): number {
  return wasm?.buffer.byteLength ?? 0;
}

/** Loads the wasm, once. `broken` is told when the client has broken down: only a reload helps then. */
export async function load(broken: (message: string) => void): Promise<void> {
  wasm ??= (await init()).memory;
  on_panic(broken);
}

export async function site(): Promise<{ text: string; site: Site }> {
  const response = await fetch("/config.json", { cache: "no-store" });
  if (!response.ok) throw new Error(`the server does not say how to play on it (${response.status})`);
  const text = await response.text();
  return { text, site: JSON.parse(text) as Site };
}

export interface Options {
  /** The text of /config.json. */
  config: string;
  room: string;
  name: string;
  token?: string;
  /** What an earlier page of this player saved: see `Game.resumeToken`. */
  resume?: string;
  transport?: Way;
}

/** One player's client. */
export class Game {
  readonly client: TankClient;
  /** The numbers of the last frame: see `HEADER`, `TANK` and `POINT`. Good until the next call of anything here. */
  view: Float64Array = new Float64Array(64);

  constructor(options: Options) {
    const { config, room, name, token, resume } = options;
    this.client = new TankClient(config, location.href, room, name, token, resume);
    if (options.transport) this.client.set_transport(options.transport);
  }

  connect(): void {
    this.client.connect();
  }

  logout(): void {
    this.client.logout();
  }

  /** Brings the player back after a crash of the page, while there is a session. A secret. */
  get resumeToken(): string | undefined {
    return this.client.resume_token();
  }

  /** Once per `requestAnimationFrame`, with the time that it gives. */
  frame(now: number): Float64Array {
    this.client.frame(now);
    if (!wasm) throw new Error("load() comes first");
    this.view = new Float64Array(wasm.buffer, this.client.view_ptr(), this.client.view_len());
    if (this.view[HEADER.layout] !== LAYOUT) throw new Error("the page and its wasm are of different builds");
    return this.view;
  }

  at(index: number): number {
    return this.view[index] ?? NaN;
  }

  has(flag: number): boolean {
    return (this.at(HEADER.flags) & flag) !== 0;
  }

  get state(): StateName {
    return STATES[this.at(HEADER.state)] ?? "idle";
  }

  /** Where each tank's row begins in the view. */
  *tanks(): Generator<number> {
    const [count, start] = [this.at(HEADER.tankCount), this.at(HEADER.tankStart)];
    for (let tank = 0; tank < count; tank++) yield start + tank * TANK.size;
  }

  /** Where the row of each other body begins in the view: rockets, crates, platforms. */
  *bodies(): Generator<number> {
    const [count, start] = [this.at(HEADER.bodyCount), this.at(HEADER.bodyStart)];
    for (let body = 0; body < count; body++) yield start + body * BODY.size;
  }

  /** Where each point of the path begins in the view: from the newest authoritative state to the predicted one. */
  *path(): Generator<number> {
    const [count, start] = [this.at(HEADER.pointCount), this.at(HEADER.pointStart)];
    for (let point = 0; point < count; point++) yield start + point * POINT.size;
  }

  /** -1 to 1, ahead and to the left positive. Call it where the key is handled: it does not wait for a frame. */
  setInput(throttle: number, turn: number): void {
    this.client.set_input(throttle, turn);
  }

  /** Radians to the left of east. Gives metres, or one of `NOT_FIRED`. */
  fire(aim: number): number {
    return this.client.fire(aim);
  }

  /** The rocket button was pressed, however shortly. Gives whether there is a tank that hears of it. */
  pressRocket(): boolean {
    return this.client.press_rocket();
  }

  setSwitch(name: Switch, on: boolean): void {
    this.client.set_switch(name, on);
  }

  setLink(ways: "up" | "down" | "both", settings: LinkSettings): void {
    this.client.set_link(ways, JSON.stringify(settings));
  }

  setBlocked(on: boolean): void {
    this.client.set_blocked(on);
  }

  setTransport(way: Way): void {
    this.client.set_transport(way);
  }

  cut(): void {
    this.client.cut();
  }

  showPath(on: boolean): void {
    this.client.show_path(on);
  }

  /** What has happened since the last call. */
  events(): GameEvent[] {
    return this.at(HEADER.events) > 0 ? (JSON.parse(this.client.poll_events()) as GameEvent[]) : [];
  }

  /** Players, then machines. */
  fighters(): Standing[] {
    return JSON.parse(this.client.fighters()) as Standing[];
  }

  diagnostics(): Diagnostics {
    return JSON.parse(this.client.diagnostics()) as Diagnostics;
  }

  export(): Export {
    return JSON.parse(this.client.export()) as Export;
  }

  /** Everything that this client was told of late, for `tanks flight`; the note is for whoever reads it. */
  report(note: string): Uint8Array<ArrayBuffer> {
    return this.client.report(note) as Uint8Array<ArrayBuffer>;
  }
}
