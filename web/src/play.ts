// A stay in a room, across disconnects: turns the client's events into pictures, sounds and notices.

import { Game, HEADER, site as readSite } from "./client";
import type { GameEvent, Site } from "./client";
import type { Controls, Driven } from "./controls/controls";
import { Minimap } from "./draw/minimap";
import { colourOf, freeColour, freeColours } from "./draw/palette";
import type { Scene } from "./draw/scene";
import { nameless } from "./fighter";
import type { Feed, Named } from "./page/feed";
import type { Hud } from "./page/hud";
import type { Entry } from "./page/lobby";
import type { Notices } from "./page/notices";
import type { Round } from "./page/round";
import { forgetSession, saveSession, savedSession } from "./page/session";
import type { Sound, SoundName } from "./page/sound";
import { explain, seconds } from "./page/words";
import type { Problem } from "./page/words";
import { Picture } from "./picture";
import { Rockets } from "./rockets";
import type { RocketEvent } from "./rockets";

/** Everything that a stay is seen and heard by. */
export interface Stage {
  scene: Scene;
  map: HTMLCanvasElement;
  controls: Controls;
  hud: Hud;
  feed: Feed;
  notices: Notices;
  round: Round;
  sound: Sound;
}

/** The owner of a stay. */
export interface Listener {
  /** It is over; why, unless it was wished. */
  onEnd(problem: Problem | undefined, entry: Entry): void;
  onEvent(event: GameEvent): void;
  /** Another client: it has none of the settings of the one before. */
  onGame(game: Game): void;
}

/** Milliseconds. A picture that is so much later than the one before is of another time: nothing glides over. */
const GAP = 1_000;
/** From one look for a server that is gone to the next. */
const LOOK_AGAIN = 2_000;

interface Later {
  at: number;
  happen: () => void;
}

export class Play implements Driven {
  readonly picture = new Picture();
  readonly names = new Map<number, string>();
  game: Game;
  private readonly map: Minimap;
  private later: Later[] = [];
  private last = NaN;
  private aimed = 0;
  private closesAt = NaN;
  private over = false;
  /** The key of the own fighter. */
  private own = -1;
  private hits = new Map<number, number>();
  private readonly rockets = new Rockets();

  /** Throws in words when the client refuses the entry. */
  constructor(
    private readonly stage: Stage,
    private config: { text: string; site: Site },
    readonly entry: Entry,
    private readonly listener: Listener,
  ) {
    this.game = this.begin();
    this.map = new Minimap(stage.map, config.site.arena, stage.scene.palette);
    stage.scene.clear();
    stage.scene.onRespawn = (tank) => this.sound("respawn", tank);
    stage.feed.clear();
    stage.round.clear();
    freeColours();
    stage.hud.show(entry.room);
    stage.notices.transport(undefined, "Connecting.");
    stage.controls.take(this);
  }

  private begin(): Game {
    const { room, name, token } = this.entry;
    const game = new Game({ config: this.config.text, room, name, token, resume: savedSession(this.entry) });
    this.listener.onGame(game);
    game.connect();
    return game;
  }

  /** `problem` is shown to the player, if it did not leave of its own will. */
  leave(problem?: Problem): void {
    this.game.logout();
    this.end(problem);
  }

  repaint(): void {
    this.map.repaint(this.stage.scene.palette);
  }

  /** Once per animation frame. */
  frame(now: number): void {
    if (this.over) return;
    const { stage, picture } = this;
    const passed = Math.min(100, now - this.last || 16) / 1_000;
    // The tab was hidden: effects of that time are neither shown nor heard.
    const wasAway = now - this.last > GAP;
    if (wasAway) this.later = [];
    this.last = now;
    stage.controls.poll(passed, picture.gunReady && picture.alive);
    this.game.frame(now);
    picture.read(this.game);
    this.own = this.game.at(HEADER.own);
    for (const event of this.game.events()) this.take(event, now, wasAway);
    if (this.over) return;
    this.happen(now);
    this.aimed = stage.controls.aim();
    stage.scene.draw(picture, this.names, this.aimed, now, passed);
    this.map.draw(picture, stage.scene.camera);
    stage.hud.frame(picture, this.game.state, now);
    stage.round.frame(this.game.at(HEADER.serverTime));
    this.tellClosing(now);
  }

  drive(throttle: number, turn: number): void {
    this.game.setInput(throttle, turn);
  }

  fire(): void {
    const { picture, stage } = this;
    const aim = stage.controls.aim();
    const [x, y] = [picture.drawn.x, picture.drawn.y];
    const metres = this.game.fire(aim);
    if (metres < 0) return;
    const now = performance.now();
    const muzzle = stage.scene.muzzle({ x, y }, aim);
    const [toX, toY] = [x + Math.cos(aim) * metres, y + Math.sin(aim) * metres];
    stage.scene.effects.shot(...muzzle, toX, toY, aim, now);
    stage.scene.effects.impact(toX, toY, aim, now);
    stage.scene.recoil(this.own);
    stage.scene.jolt(0.22);
    stage.sound.play("shot");
  }

  /** One press. What comes of it is told at once by an event. */
  launch(): void {
    this.game.pressRocket();
  }

  heading(): number {
    return this.picture.drawn.heading || 0;
  }

  bearingTo(pageX: number, pageY: number): number {
    const [x, y] = this.stage.scene.locate(pageX, pageY);
    return Math.atan2(y - this.picture.drawn.y, x - this.picture.drawn.x) || 0;
  }

  private end(problem: Problem | undefined): void {
    if (this.over) return;
    this.over = true;
    forgetSession();
    this.stage.controls.take(undefined);
    this.stage.hud.hide();
    this.stage.notices.say("");
    // Its logout is on the way, and a freed client sends nothing more.
    const { client } = this.game;
    setTimeout(() => client.free(), 500);
    this.listener.onEnd(problem, this.entry);
  }

  private named(fighter: number): Named {
    return { fighter, name: this.names.get(fighter) ?? nameless(fighter), own: fighter === this.own };
  }

  private take(event: GameEvent, now: number, wasAway: boolean): void {
    this.listener.onEvent(event);
    switch (event.type) {
      case "state":
        return this.takeState(event);
      case "transport":
        return this.stage.notices.transport(event.kind, event.why);
      case "joined":
        this.names.set(event.fighter, event.name);
        // Taken in the order of joins, so that all clients choose the same colours.
        colourOf(event.fighter, false);
        if (event.own) this.own = event.fighter;
        return;
      case "left":
        this.names.delete(event.fighter);
        freeColour(event.fighter);
        return;
      case "restarted":
      case "missed":
        this.rockets.clear();
        for (const { fighter, name } of this.game.fighters()) this.names.set(fighter, name);
        return;
      case "closing":
        this.closesAt = now + event.within_ms;
        return;
      case "round":
        this.stage.round.take(event, this.game.fighters(), (text) => this.stage.feed.say(text));
        if (!wasAway && event.over) this.stage.sound.play("round");
        return;
      case "rocket":
        return this.takeRocket(event, now, wasAway);
      default:
        return wasAway ? this.takeMissed(event) : this.takeCombat(event, now);
    }
  }

  private takeState({ state, text, why }: Extract<GameEvent, { type: "state" }>): void {
    const { notices } = this.stage;
    if (state === "logged_in") {
      notices.say("");
      saveSession(this.entry, this.game.resumeToken);
    } else if (state === "reconnecting") {
      this.closesAt = NaN;
      notices.say(`${ended(text, why)} Reconnecting.`);
      notices.transport(undefined, ended(text, why));
    } else if (state === "failed") this.end(explain(text));
    else if (state === "timed_out") void this.lookForServer(why ? ended(text, why) : "The server does not answer.");
  }

  /** The server has been gone for longer than a session lives: a new one begins when it is there again. */
  private async lookForServer(why: string): Promise<void> {
    this.stage.notices.say(`${why} Trying again every two seconds.`);
    for (;;) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN));
      if (this.over) return;
      const found = await readSite().catch(() => undefined);
      if (!found || this.over) continue;
      this.config = found;
      this.game.client.free();
      this.names.clear();
      this.stage.scene.clear();
      try {
        this.game = this.begin();
      } catch (problem) {
        this.end(explain(String(problem)));
      }
      return;
    }
  }

  /** Events of the time in which the tab was hidden: only the own death has to be known. */
  private takeMissed(event: GameEvent): void {
    if (event.type === "death" && event.fighter === this.own) this.stage.hud.wasDestroyed(this.destroyer(event.by));
  }

  private destroyer(by: number): string {
    const { own, name } = this.named(by);
    return own ? "yourself" : name;
  }

  /** Louder the nearer it is to the own tank. */
  private sound(name: SoundName, at: { x: number; y: number } | undefined): void {
    const { x, y } = this.picture.drawn;
    this.stage.sound.play(name, at && Number.isFinite(x) ? at.x - x : 0, at && Number.isFinite(y) ? at.y - y : 0);
  }

  private takeCombat(event: GameEvent, now: number): void {
    const { scene, hud, feed } = this.stage;
    const { effects } = scene;
    if (event.type === "fired" && !event.own) {
      // Along the barrel that is on screen then.
      this.wait(now + event.in_ms, () => {
        const shooter = this.picture.find(event.shooter);
        const from = scene.muzzle(shooter ?? { x: event.from[0], y: event.from[1] }, event.aim);
        effects.shot(...from, ...event.to, event.aim, this.last);
        effects.impact(...event.to, event.aim, this.last);
        scene.recoil(event.shooter);
        this.sound("shot", { x: from[0], y: from[1] });
      });
    } else if (event.type === "hit") {
      this.hits.set(event.target, event.shooter);
      this.wait(now + event.in_ms, () => {
        const target = this.picture.find(event.target);
        if (target) effects.hit(target.x, target.y, this.last);
        if (target) this.sound("hit", target);
      });
    } else if (event.type === "damage") this.takeDamage(event, now);
    else if (event.type === "death") {
      const [by, target] = [this.named(event.by), this.named(event.fighter)];
      feed.add(by, target);
      const tank = this.picture.find(event.fighter);
      if (tank) effects.explosion(tank.x, tank.y, now);
      this.sound("explosion", tank);
      if (target.own) {
        hud.wasDestroyed(this.destroyer(event.by));
        scene.jolt(1);
      } else if (by.own) this.stage.sound.play("score");
    }
  }

  private takeRocket(event: RocketEvent, now: number, wasAway: boolean): void {
    const show = this.rockets.take(event);
    if (!show || wasAway) return;
    const { effects, things } = this.stage.scene;
    const [x, y] = event.at;
    if (show === "launch") {
      effects.launch(x, y, event.heading, now);
      this.sound("rocket", { x, y });
      if (event.own) this.stage.scene.jolt(0.3);
    } else if (show === "burst") {
      effects.burst(x, y, now);
      this.sound("explosion", { x, y });
    } else {
      const last = things.lastSeen(event.id) ?? { x, y };
      effects.fizzle(last.x, last.y, now);
    }
  }

  private takeDamage(event: Extract<GameEvent, { type: "damage" }>, now: number): void {
    const { scene, hud } = this.stage;
    const tank = this.picture.find(event.target);
    if (!tank) return;
    scene.effects.damage(tank.x, tank.y, event.amount, tank.own ? scene.palette.bad : scene.palette.label, now);
    if (!tank.own) return;
    hud.wasHit(now);
    scene.jolt(0.55);
    const shooter = this.picture.find(this.hits.get(event.target) ?? -1);
    if (shooter) scene.effects.blow(Math.atan2(shooter.y - tank.y, shooter.x - tank.x), now);
  }

  private wait(at: number, happen: () => void): void {
    this.later.push({ at, happen });
  }

  private happen(now: number): void {
    const due = this.later.filter((later) => later.at <= now);
    if (due.length === 0) return;
    this.later = this.later.filter((later) => later.at > now);
    for (const later of due) later.happen();
  }

  private tellClosing(now: number): void {
    if (Number.isNaN(this.closesAt)) return;
    const left = this.closesAt - now;
    if (left > 0) this.stage.notices.say(`The server closes in ${seconds(left)}.`);
    else {
      this.closesAt = NaN;
      if (this.game.state === "logged_in") this.stage.notices.say("");
    }
  }
}

/** How a connection ended: by the network, or by the server, which says why. */
function ended(text: string, why: string | null): string {
  if (!why) return "The connection is lost.";
  return why === "stopped" ? "The server is shutting down." : `The server closed the connection: ${text}.`;
}
