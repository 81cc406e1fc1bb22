// The view of a frame as objects, made once and used again: reading it makes no garbage, and what is read stays good when
// the wasm's memory moves.

import { FLAG, HEADER, OWN, POINT, TANK } from "./client";
import type { Game } from "./client";
import { isMachine } from "./fighter";

/** What has a view: a live match, or a recorded one. */
export type Viewed = Pick<Game, "at" | "tanks" | "path">;

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
  /** Milliseconds; below zero if alive. */
  respawnIn = -1;
  roundTrip = NaN;
  /** Players and then machines, each in order; the own one is among them. Longer than `tankCount` when there were more. */
  readonly tanks: Tank[] = [];
  tankCount = 0;
  own: Tank | undefined;
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
    this.respawnIn = at(HEADER.respawnIn);
    this.roundTrip = at(HEADER.roundTrip);
    this.readTanks(game);
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
      readPlace(game, row + TANK.toldX, tank.told);
      if (tank.own) this.own = tank;
    }
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
