// The view of a frame as objects, made once and used again: reading it makes no garbage, and what is read stays good when
// the wasm's memory moves.

import { BODY, FLAG, HEADER, OWN, POINT, TANK } from "./client";
import type { Game } from "./client";
import { isMachine } from "./fighter";

/** What has a view: a live match, or a recorded one. */
export type Viewed = Pick<Game, "at" | "tanks" | "bodies" | "path">;

export interface Tank {
  fighter: number;
  machine: boolean;
  x: number;
  y: number;
  heading: number;
  speed: number;
  hp: number;
  own: boolean;
  alive: boolean;
  /** Stands for want of news. */
  held: boolean;
  /** Direction of the last shot, NaN if there was none, and how long ago it was. */
  aim: number;
  shotAge: number;
  kills: number;
  deaths: number;
  told: Place;
  /** The platform that carries it, -1 if none does. */
  carrier: number;
}

/** A rocket, a crate or a platform. */
export interface Body {
  id: number;
  /** One of `KIND`. */
  kind: number;
  x: number;
  y: number;
  heading: number;
  /** The player launched it. */
  own: boolean;
  /** With the player's tank; on its way out of that. */
  predicted: boolean;
  leaving: boolean;
  held: boolean;
  /** The fighter that launched it, -1 if none did. */
  owner: number;
  /** Milliseconds behind prediction time; NaN if it is not predicted. */
  lag: number;
  carrier: number;
  told: Place;
}

export interface Place {
  x: number;
  y: number;
  heading: number;
}

const nowhere = (): Place => ({ x: NaN, y: NaN, heading: NaN });

export class Picture {
  now = 0;
  playing = false;
  alive = false;
  gunReady = false;
  starved = false;
  hp = 0;
  readonly drawn = nowhere();
  readonly visible = nowhere();
  readonly predicted = nowhere();
  readonly authoritative = nowhere();
  gunLeft = 0;
  gunCooldown = 1;
  reloadLeft = 0;
  reload = 1;
  /** Milliseconds; below zero if alive. */
  respawnIn = -1;
  roundTrip = NaN;
  /** Players and then machines, each in order; the own one is among them. Longer than `tankCount` when there were more. */
  readonly tanks: Tank[] = [];
  tankCount = 0;
  own: Tank | undefined;
  /** In order of their ids. Longer than `bodyCount` when there were more. */
  readonly bodies: Body[] = [];
  bodyCount = 0;
  readonly path: Place[] = [];
  pathLength = 0;

  read(game: Viewed): void {
    const at = (index: number) => game.at(index);
    const flags = at(HEADER.flags);
    this.now = at(HEADER.now);
    this.playing = (flags & OWN.playing) !== 0;
    this.alive = (flags & OWN.alive) !== 0;
    this.gunReady = (flags & OWN.gunReady) !== 0;
    this.starved = (flags & OWN.starved) !== 0;
    this.hp = at(HEADER.hp);
    readPlace(game, HEADER.drawn, this.drawn);
    readPlace(game, HEADER.visible, this.visible);
    readPlace(game, HEADER.predicted, this.predicted);
    readPlace(game, HEADER.authoritative, this.authoritative);
    this.gunLeft = at(HEADER.gunLeft);
    this.gunCooldown = at(HEADER.gunCooldown);
    this.reloadLeft = at(HEADER.reloadLeft);
    this.reload = at(HEADER.reload) || 1;
    this.respawnIn = at(HEADER.respawnIn);
    this.roundTrip = at(HEADER.roundTrip);
    this.readTanks(game);
    this.readBodies(game);
    this.pathLength = 0;
    for (const row of game.path()) readPlace(game, row + POINT.x, (this.path[this.pathLength++] ??= nowhere()));
  }

  private readTanks(game: Viewed): void {
    this.tankCount = 0;
    this.own = undefined;
    for (const row of game.tanks()) {
      const tank = (this.tanks[this.tankCount++] ??= { told: nowhere() } as Tank);
      const flags = game.at(row + TANK.flags);
      tank.fighter = game.at(row + TANK.fighter);
      tank.machine = isMachine(tank.fighter);
      tank.x = game.at(row + TANK.x);
      tank.y = game.at(row + TANK.y);
      tank.heading = game.at(row + TANK.heading);
      tank.speed = game.at(row + TANK.speed);
      tank.hp = game.at(row + TANK.hp);
      tank.own = (flags & FLAG.own) !== 0;
      tank.alive = (flags & FLAG.alive) !== 0;
      tank.held = (flags & FLAG.held) !== 0;
      tank.aim = game.at(row + TANK.aim);
      tank.shotAge = game.at(row + TANK.shotAge);
      tank.kills = game.at(row + TANK.kills);
      tank.deaths = game.at(row + TANK.deaths);
      tank.carrier = game.at(row + TANK.carrier);
      readPlace(game, row + TANK.toldX, tank.told);
      if (tank.own) this.own = tank;
    }
  }

  private readBodies(game: Viewed): void {
    this.bodyCount = 0;
    for (const row of game.bodies()) {
      const body = (this.bodies[this.bodyCount++] ??= { told: nowhere() } as Body);
      const flags = game.at(row + BODY.flags);
      body.id = game.at(row + BODY.id);
      body.kind = game.at(row + BODY.kind);
      body.x = game.at(row + BODY.x);
      body.y = game.at(row + BODY.y);
      body.heading = game.at(row + BODY.heading);
      body.own = (flags & FLAG.own) !== 0;
      body.predicted = (flags & FLAG.predicted) !== 0;
      body.leaving = (flags & FLAG.leaving) !== 0;
      body.held = (flags & FLAG.held) !== 0;
      body.owner = game.at(row + BODY.owner);
      body.lag = game.at(row + BODY.lag);
      body.carrier = game.at(row + BODY.carrier);
      readPlace(game, row + BODY.toldX, body.told);
    }
  }

  /** The other body of that id. */
  body(id: number): Body | undefined {
    for (let index = 0; index < this.bodyCount; index++) {
      const body = this.bodies[index];
      if (body?.id === id) return body;
    }
    return undefined;
  }

  find(fighter: number): Tank | undefined {
    for (let index = 0; index < this.tankCount; index++) {
      const tank = this.tanks[index];
      if (tank?.fighter === fighter) return tank;
    }
    return undefined;
  }
}

function readPlace(game: Viewed, row: number, place: Place): void {
  place.x = game.at(row);
  place.y = game.at(row + 1);
  place.heading = game.at(row + 2);
}
