// The client without decoration: connects, drives by WASD, draws rectangles. What tests look at is `window.harness`.

import { FLAG, Game, HEADER, OWN, TANK, break_down, golden_hash, load, memory, site } from "./client";
import type { GameEvent, Site, Way } from "./client";

export interface Harness {
  game: Game;
  site: Site;
  events: GameEvent[];
  frames: number;
  /** No frames, as if the page were hidden. */
  paused: boolean;
  /** Bytes. */
  memory: () => number;
  broken: string | undefined;
  golden_hash: typeof golden_hash;
  break_down: typeof break_down;
}

declare global {
  interface Window {
    harness?: Harness;
  }
}

const MAX_EVENTS = 1_000;
const keys = new Set<string>();

function drive(game: Game): void {
  const axis = (plus: string, minus: string) => Number(keys.has(plus)) - Number(keys.has(minus));
  game.setInput(axis("KeyW", "KeyS"), axis("KeyA", "KeyD"));
}

function draw(context: CanvasRenderingContext2D, harness: Harness): void {
  const { game } = harness;
  const [width, height] = harness.site.arena.size;
  const scale = Math.min(context.canvas.width / width, context.canvas.height / height);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = "#202020";
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.setTransform(scale, 0, 0, -scale, context.canvas.width / 2, context.canvas.height / 2);
  context.fillStyle = "#606060";
  for (const obstacle of harness.site.arena.obstacles) {
    if ("block" in obstacle) {
      const { min, max } = obstacle.block;
      context.fillRect(min[0], min[1], max[0] - min[0], max[1] - min[1]);
    } else {
      context.beginPath();
      context.arc(obstacle.pillar.center[0], obstacle.pillar.center[1], obstacle.pillar.radius, 0, 7);
      context.fill();
    }
  }
  for (const row of game.tanks()) {
    const flags = game.at(row + TANK.flags);
    context.save();
    context.translate(game.at(row + TANK.x), game.at(row + TANK.y));
    context.rotate(game.at(row + TANK.heading));
    context.fillStyle = flags & FLAG.alive ? (flags & FLAG.own ? "#60c060" : "#c06060") : "#404040";
    context.fillRect(-1.5, -1, 3, 2);
    context.restore();
  }
}

function tell(text: string): void {
  const line = document.getElementById("line");
  if (line) line.textContent = text;
}

async function main(): Promise<void> {
  const wishes = new URLSearchParams(location.search);
  let harness: Harness | undefined;
  await load((message) => {
    if (harness) harness.broken = message;
    tell(message);
  });
  const { text, site: told } = await site();
  const game = new Game({
    config: text,
    room: wishes.get("room") ?? told.default_room,
    name: wishes.get("name") ?? "Guest",
    token: wishes.get("token") ?? undefined,
    transport: (wishes.get("transport") ?? "auto") as Way,
  });
  const shown: Harness = {
    game,
    site: told,
    events: [],
    frames: 0,
    paused: false,
    memory,
    broken: undefined,
    golden_hash,
    break_down,
  };
  harness = window.harness = shown;
  const turn = (pressed: boolean) => (event: KeyboardEvent) => {
    if (pressed) keys.add(event.code);
    else keys.delete(event.code);
    drive(game);
  };
  addEventListener("keydown", turn(true));
  addEventListener("keyup", turn(false));
  addEventListener("blur", () => {
    keys.clear();
    drive(game);
  });
  const canvas = document.querySelector("canvas");
  const context = canvas?.getContext("2d");
  canvas?.addEventListener("click", (event) => {
    const [x, y] = [event.offsetX - canvas.width / 2, canvas.height / 2 - event.offsetY];
    const [width, height] = told.arena.size;
    const scale = Math.min(canvas.width / width, canvas.height / height);
    game.fire(Math.atan2(y / scale - game.at(HEADER.drawn + 1), x / scale - game.at(HEADER.drawn)));
  });
  const frame = (now: number) => {
    if (shown.broken) return;
    requestAnimationFrame(frame);
    if (shown.paused) return;
    game.frame(now);
    shown.frames += 1;
    shown.events.push(...game.events());
    shown.events.splice(0, Math.max(0, shown.events.length - MAX_EVENTS));
    if (context) draw(context, shown);
    if (shown.frames % 30 === 0) {
      const ms = (at: number) => game.at(at).toFixed(1);
      const playing = game.has(OWN.playing) ? "playing" : "not playing";
      tell(`${game.state}, ${playing}, rtt ${ms(HEADER.roundTrip)} ms, lead ${ms(HEADER.lead)} ms`);
    }
  };
  requestAnimationFrame(frame);
  game.connect();
}

main().catch((problem: unknown) => tell(String(problem)));
