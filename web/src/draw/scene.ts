// The arena in one frame. It draws, and knows nothing of events.

import type { Site } from "../client";
import type { Picture, Tank } from "../picture";
import { wantsLessMotion } from "../page/motion";
import { Camera } from "./camera";
import type { Insets } from "./camera";
import { Effects } from "./effects";
import { drawGhosts } from "./ghosts";
import type { Ghosts } from "./ghosts";
import { Ground } from "./ground";
import { Labels } from "./labels";
import { PALETTES, colourOf } from "./palette";
import type { Palette, Theme } from "./palette";
import { MUZZLE, REACH, Sprites } from "./sprites";
import { Things } from "./things";
import { Trails } from "./trails";

/** More pixels than this per pixel of the page cost more than they show. */
const MAX_RATIO = 2;
/** Radians that a turret turns in a second, when it is not one's own. */
const TURRET_SPEED = 12;
/** Milliseconds after a shot that a turret still looks there. */
const TURRET_STAYS = 2_500;
/** Milliseconds. Others are drawn as they were a while ago: a respawn is told before it is seen. */
const RESPAWN_SEEN = 500;

interface Memory {
  aim: number;
  travelled: number;
  recoil: number;
  alive: boolean;
  /** Where and when it was told to live again. */
  wreckX: number;
  wreckY: number;
  revived: number;
}

export class Scene {
  readonly camera: Camera;
  readonly effects: Effects;
  palette: Palette;
  ghosts: Ghosts | undefined;
  /** Called when a tank that was a wreck is drawn whole again. */
  onRespawn: ((tank: Tank) => void) | undefined;
  /** Whose tank has a ring around it besides the own one. */
  followed: number | undefined;
  private readonly context: CanvasRenderingContext2D;
  private readonly ground: Ground;
  readonly things: Things;
  private readonly sprites = new Sprites();
  private readonly trails: Trails;
  private readonly labels: Labels;
  private readonly memories = new Map<number, Memory>();
  private insets: Insets = { top: 0, right: 0, bottom: 0 };
  private ratio = 1;
  private resized = true;
  private readonly observer = new ResizeObserver(() => (this.resized = true));

  constructor(
    readonly canvas: HTMLCanvasElement,
    arena: Site["arena"],
    theme: Theme,
  ) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser does not draw: it has no canvas");
    this.context = context;
    this.palette = PALETTES[theme];
    this.camera = new Camera(arena.size);
    this.ground = new Ground(arena, this.palette);
    this.things = new Things(context, this.camera, this.sprites);
    this.trails = new Trails(this.ground);
    this.labels = new Labels(this.palette);
    this.effects = new Effects();
    this.observer.observe(canvas);
  }

  setTheme(theme: Theme): void {
    this.palette = PALETTES[theme];
    this.ground.repaint(this.palette);
    this.labels.repaint(this.palette);
  }

  /** Covered by panels: the picture is centred on the rest. */
  setInsets(insets: Insets): void {
    this.insets = insets;
    this.resized = true;
  }

  /** The whole arena in one picture, however small. */
  setWide(wide: boolean): void {
    this.camera.wide = wide;
    this.resized = true;
  }

  /** Another one draws on the canvas. */
  end(): void {
    this.observer.disconnect();
  }

  /** Forgets the tanks of before: another room, or long ago. */
  clear(): void {
    this.effects.clear();
    this.trails.clear();
    this.things.clear();
    this.memories.clear();
  }

  /** From a point of the page to metres. */
  locate(pageX: number, pageY: number): [x: number, y: number] {
    const box = this.canvas.getBoundingClientRect();
    return this.camera.toWorld((pageX - box.left) * this.ratio, (pageY - box.top) * this.ratio);
  }

  /** And back. */
  onPage(x: number, y: number): [pageX: number, pageY: number] {
    const box = this.canvas.getBoundingClientRect();
    return [box.left + this.camera.toCanvasX(x) / this.ratio, box.top + this.camera.toCanvasY(y) / this.ratio];
  }

  muzzle(tank: { x: number; y: number }, aim: number): [x: number, y: number] {
    return [tank.x + Math.cos(aim) * MUZZLE, tank.y + Math.sin(aim) * MUZZLE];
  }

  recoil(fighter: number): void {
    const memory = this.memories.get(fighter);
    if (memory && !wantsLessMotion()) memory.recoil = 1;
  }

  jolt(strength: number): void {
    if (!wantsLessMotion()) this.camera.jolt(strength);
  }

  /** Nobody plays: the arena alone. */
  drawEmpty(): void {
    this.fit();
    this.camera.cutTo(0, 0);
    // It stays: there is no next frame that could paint the rest.
    this.ground.draw(this.context, this.camera, performance.now(), Infinity);
  }

  draw(picture: Picture, names: ReadonlyMap<number, string>, aim: number, now: number, seconds: number): void {
    this.fit();
    const { context, camera, palette } = this;
    const { own } = picture;
    if (own && picture.playing) camera.follow(own.x, own.y, picture.alive ? aim : own.heading, seconds);
    this.sprites.resize(camera.scale);
    this.ground.draw(context, camera, now);
    const seen = picture.tanks.slice(0, picture.tankCount).filter((tank) => this.remember(tank, aim, now, seconds));
    this.things.drawPlatforms(picture);
    const wrecks = seen.filter((tank) => !tank.alive);
    for (const tank of wrecks) this.drawWreck(tank, wrecks.length, now, seconds);
    this.things.drawCrates(picture);
    for (const tank of seen) if (tank.alive) this.drawHull(tank);
    for (const tank of seen) if (tank.alive) this.drawTurret(tank);
    this.things.drawRockets(picture, this.effects, now);
    if (this.ghosts) drawGhosts(context, camera, palette, picture, this.ghosts, this.ratio);
    if (own && picture.alive && picture.playing) this.drawAim(own, aim);
    this.effects.draw(context, camera, this.sprites, palette, now, seconds);
    if (own) this.effects.drawBlows(context, camera, own.x, own.y, palette, now);
    for (const tank of seen) {
      if (!tank.alive) continue;
      const name = tank.own ? "you" : (names.get(tank.fighter) ?? "");
      this.labels.draw(context, camera, tank, name, this.ratio);
    }
  }

  private fit(): void {
    if (!this.resized) return;
    this.resized = false;
    this.ratio = Math.min(MAX_RATIO, window.devicePixelRatio || 1);
    const box = this.canvas.getBoundingClientRect();
    const [width, height] = [Math.round(box.width * this.ratio), Math.round(box.height * this.ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.camera.resize(width, height, this.ratio, this.insets);
    this.camera.cutTo(this.camera.x, this.camera.y);
  }

  /** Updates the memory of a tank. Gives whether it is in the picture. */
  private remember(tank: Tank, aim: number, now: number, seconds: number): boolean {
    let memory = this.memories.get(tank.fighter);
    if (!memory) {
      memory = { aim: tank.heading, travelled: 0, recoil: 0, alive: tank.alive, wreckX: 0, wreckY: 0, revived: -Infinity };
      this.memories.set(tank.fighter, memory);
    }
    memory.travelled += tank.speed * seconds;
    memory.recoil = Math.max(0, memory.recoil - seconds * 6);
    if (tank.own) memory.aim = aim;
    else {
      const looks = tank.shotAge < TURRET_STAYS ? tank.aim : tank.heading;
      const wanted = Number.isFinite(looks) ? looks : tank.heading;
      const left = Math.atan2(Math.sin(wanted - memory.aim), Math.cos(wanted - memory.aim));
      // A shot has to leave the barrel: then the turret is there at once.
      const reach = tank.shotAge < 120 ? Math.PI : TURRET_SPEED * seconds;
      memory.aim += Math.max(-reach, Math.min(reach, left));
    }
    this.rememberLife(tank, memory, now);
    const seen = this.camera.sees(tank.x, tank.y, 4);
    if (tank.alive && seen) this.trails.leave(tank, now);
    return seen;
  }

  /** A tank is a wreck for as long as it is drawn where it became one. */
  private rememberLife(tank: Tank, memory: Memory, now: number): void {
    if (!tank.alive) {
      memory.alive = false;
      [memory.wreckX, memory.wreckY, memory.revived] = [tank.x, tank.y, now];
    } else if (!memory.alive) {
      const stays = Math.hypot(tank.x - memory.wreckX, tank.y - memory.wreckY) < 1;
      if (stays && now - memory.revived < RESPAWN_SEEN) tank.alive = false;
      else {
        memory.alive = true;
        this.effects.respawn(tank.x, tank.y, colourOf(tank.fighter, tank.own), now);
        this.onRespawn?.(tank);
      }
    }
  }

  private put(sprite: HTMLCanvasElement, x: number, y: number, angle: number): void {
    const { context, camera } = this;
    const [sin, cos] = [Math.sin(-angle), Math.cos(-angle)];
    context.setTransform(cos, sin, -sin, cos, camera.toCanvasX(x), camera.toCanvasY(y));
    context.drawImage(sprite, -sprite.width / 2, -sprite.height / 2);
  }

  private drawWreck(tank: Tank, wrecks: number, now: number, seconds: number): void {
    this.put(this.sprites.wreck(), tank.x, tank.y, tank.heading);
    // All of them together give off as much smoke as a few: it is the dearest thing to draw.
    this.effects.smoulder(tank.x, tank.y, seconds * Math.min(1, 4 / wrecks), now);
  }

  private drawHull(tank: Tank): void {
    const { context, camera } = this;
    this.put(this.sprites.shadow(), tank.x + 0.28, tank.y - 0.36, tank.heading);
    if (tank.own || tank.fighter === this.followed) {
      context.resetTransform();
      context.strokeStyle = this.palette.ring;
      context.globalAlpha = 0.6;
      context.lineWidth = Math.max(1.5, 0.1 * camera.scale);
      context.beginPath();
      context.arc(camera.toCanvasX(tank.x), camera.toCanvasY(tank.y), 2.15 * camera.scale, 0, 7);
      context.stroke();
      context.globalAlpha = 1;
    }
    const travelled = this.memories.get(tank.fighter)?.travelled ?? 0;
    if (tank.held) context.globalAlpha = 0.65;
    this.put(this.sprites.hull(tank.fighter, tank.own, travelled), tank.x, tank.y, tank.heading);
    context.globalAlpha = 1;
  }

  private drawTurret(tank: Tank): void {
    const memory = this.memories.get(tank.fighter);
    const aim = memory?.aim ?? tank.heading;
    const back = 0.35 * (memory?.recoil ?? 0);
    this.put(this.sprites.turret(tank.fighter, tank.own), tank.x - Math.cos(aim) * back, tank.y - Math.sin(aim) * back, aim);
  }

  /** Dots along the barrel: where a shot would go. */
  private drawAim(own: Tank, aim: number): void {
    const { context, camera } = this;
    context.fillStyle = this.palette.aim;
    for (let dot = 0; dot < 5; dot++) {
      const way = REACH + 1 + dot * 1.5;
      context.globalAlpha = 0.8 - dot * 0.15;
      context.beginPath();
      const [x, y] = [own.x + Math.cos(aim) * way, own.y + Math.sin(aim) * way];
      context.arc(camera.toCanvasX(x), camera.toCanvasY(y), Math.max(1.2, 0.09 * camera.scale), 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }
}
