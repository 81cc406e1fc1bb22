// Over the arena: hit points, gun, rocket tube, ping, the countdown of a wreck, and the red of being hit.

import type { StateName } from "../client";
import type { Picture } from "../picture";
import { element, write } from "./dom";
import { seconds } from "./words";

/** Milliseconds that the red of a hit lasts, and from one ping to the next. */
const HURT = 600;
const PING = 500;

/** The round trip, or why there is none. */
function ping(picture: Picture, state: StateName): string {
  if (state === "reconnecting" || state === "timed_out") return "link is down";
  if (state !== "logged_in") return "connecting";
  if (picture.starved) return "no answer";
  return Number.isFinite(picture.roundTrip) ? `${Math.round(picture.roundTrip)} ms` : "measuring";
}

export class Hud {
  private readonly hud = element("hud");
  private readonly own = element("own");
  private readonly hp = element("hp", "span");
  private readonly hpBar = element("hp-bar", "i");
  private readonly gunBar = element("gun-bar", "i");
  private readonly rocketBar = element("rocket-bar", "i");
  private readonly rocketButton = element("rocket", "button");
  private readonly tally = element("tally", "span");
  private readonly ping = element("ping", "span");
  private readonly down = element("down");
  private readonly downIn = element("down-in", "p");
  private readonly hurt = element("hurt");
  private hurtAt = -Infinity;
  private hurtShown = 0;
  private pingAt = -Infinity;
  private hpShown = -1;
  private gunShown = -1;
  private rocketShown = -1;

  show(room: string): void {
    this.hud.hidden = false;
    write(element("room", "strong"), room);
  }

  hide(): void {
    this.hud.hidden = true;
    this.hurt.style.opacity = "0";
  }

  wasHit(now: number): void {
    this.hurtAt = now;
  }

  wasDestroyed(by: string): void {
    write(element("down-by", "p"), `Destroyed by ${by}`);
  }

  frame(picture: Picture, state: StateName, now: number): void {
    this.own.style.visibility = picture.playing ? "visible" : "hidden";
    if (picture.hp !== this.hpShown) {
      this.hpShown = picture.hp;
      write(this.hp, String(Math.round(picture.hp)));
      this.hpBar.style.transform = `scaleX(${Math.max(0, picture.hp) / 100})`;
      this.own.classList.toggle("low", picture.hp <= 25);
    }
    const loaded = Math.round((1 - Math.min(1, picture.gunLeft / picture.gunCooldown)) * 50) / 50;
    if (loaded !== this.gunShown) {
      this.gunShown = loaded;
      this.gunBar.style.transform = `scaleX(${loaded})`;
    }
    const tube = Math.round((1 - Math.min(1, picture.reloadLeft / picture.reload)) * 50) / 50;
    if (tube !== this.rocketShown) {
      this.rocketShown = tube;
      this.rocketBar.style.transform = `scaleX(${tube})`;
      this.rocketBar.classList.toggle("loading", tube < 1);
      this.rocketButton.style.setProperty("--loaded", String(tube));
    }
    const { own } = picture;
    write(this.tally, `${own?.kills ?? 0} K  ${own?.deaths ?? 0} D`);
    const waits = picture.playing && picture.respawnIn >= 0;
    if (this.down.hidden === waits) this.down.hidden = !waits;
    if (waits) write(this.downIn, seconds(picture.respawnIn));
    const hurt = Math.round(Math.max(0, 1 - (now - this.hurtAt) / HURT) * 20) / 20;
    if (hurt !== this.hurtShown) this.hurt.style.opacity = String((this.hurtShown = hurt) * 0.8);
    if (now - this.pingAt > PING) {
      this.pingAt = now;
      write(this.ping, ping(picture, state));
      this.ping.classList.toggle("alarm", state === "reconnecting" || picture.starved);
    }
  }
}
