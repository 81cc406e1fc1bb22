// A recorded match on the arena's canvas: its frames, the player bar, keys and pointers. Made for one file, and ended with it.

import type { Tank } from "../picture";
import { Picture } from "../picture";
import { Minimap } from "../draw/minimap";
import { freeColours } from "../draw/palette";
import { Scene } from "../draw/scene";
import { isMachine, nameless } from "../fighter";
import { element, make } from "../page/dom";
import { Feed } from "../page/feed";
import { Bar } from "./bar";
import { People } from "./people";
import type { Corrections, Recorded, Seen } from "./recorded";
import { Timeline, list } from "./timeline";
import type { Host } from "./watch";

/** Milliseconds: a frame that took longer is of a page that was hidden; from one look at scores to the next; and that
 *  something is said for. */
const LONGEST = 100;
const LOOK_EVERY = 250;
const SAID_FOR = 4_000;
/** Milliseconds that the arrows go by. */
const STEP = 1_000;
/** Pixels of the page around a tank that mean it. */
const GRASP = 24;
/** Pixels of the page. In a narrower one the whole arena is too small to be the first thing to see. */
const NARROW = 820;

export class Show {
  readonly picture = new Picture();
  readonly scene: Scene;
  followed: number | undefined;
  private readonly element = make("div");
  private readonly bar: Bar;
  private readonly timeline: Timeline;
  private readonly people: People;
  private readonly feed: Feed;
  private readonly map: Minimap;
  private readonly mapCanvas = make("canvas", "map");
  private readonly names = new Map<number, string>();
  private readonly listeners = new AbortController();
  private whole = innerWidth > NARROW;
  private asked = 0;
  private last = NaN;
  /** Milliseconds that were played: what is seen for a moment lives by them, and stands when time stands. */
  private played = 0;
  private looked = -Infinity;
  private wanted: number | undefined;
  private said = "";

  constructor(
    private readonly host: Host,
    readonly recorded: Recorded,
    private readonly close: (problem?: string) => void,
  ) {
    const { about } = recorded;
    freeColours();
    this.scene = new Scene(host.canvas, about.arena, host.theme());
    this.timeline = new Timeline(recorded.marks, (at) => (this.wanted = at));
    this.bar = new Bar(title(about.room, about.started), this.timeline.element, {
      play: () => this.toggle(),
      speed: (speed) => recorded.setSpeed(speed),
      whole: () => this.setWhole(!this.whole),
      people: () => this.element.classList.toggle("with-people"),
      close: () => close(),
    });
    this.people = new People((fighter) => this.follow(fighter));
    const feed = make("ol", "feed");
    feed.ariaLabel = "Kills";
    this.feed = new Feed(feed);
    [this.mapCanvas.width, this.mapCanvas.ariaHidden] = [240, "true"];
    this.map = new Minimap(this.mapCanvas, about.arena, this.scene.palette);
    this.element.id = "show";
    this.element.append(this.people.element, make("div", "right", this.mapCanvas, feed), this.bar.element);
    element("stage", "main").append(this.element);
    document.documentElement.toggleAttribute("data-show", true);
    this.setWhole(this.whole);
    this.listen();
    recorded.play(true);
    this.timeline.element.focus({ preventScroll: true });
    if (window.__halftrack) window.__halftrack.show = this;
    this.ask();
  }

  end(): void {
    cancelAnimationFrame(this.asked);
    this.listeners.abort();
    this.element.remove();
    document.documentElement.toggleAttribute("data-show", false);
    this.scene.end();
    this.recorded.free();
    if (window.__halftrack) window.__halftrack.show = undefined;
  }

  repaint(): void {
    this.scene.setTheme(this.host.theme());
    this.map.repaint(this.scene.palette);
    this.timeline.repaint();
  }

  /** For a while. */
  say(text: string): void {
    this.said = text;
    setTimeout(() => {
      if (this.said === text) this.said = "";
    }, SAID_FOR);
  }

  follow(fighter: number | undefined): void {
    this.followed = fighter;
    if (fighter !== undefined) this.setWhole(false);
    this.looked = -Infinity;
  }

  private setWhole(whole: boolean): void {
    this.whole = whole;
    if (!whole && this.followed === undefined) this.followed = this.people.order[0];
    this.scene.setWide(whole);
    this.mapCanvas.hidden = whole;
    this.looked = -Infinity;
  }

  private toggle(): void {
    const { recorded } = this;
    // From its end it begins anew.
    if (!recorded.playing && recorded.now >= recorded.length) this.forget();
    recorded.play(!recorded.playing);
  }

  private ask(): void {
    this.asked = requestAnimationFrame((now) => {
      try {
        this.frame(now);
        this.ask();
      } catch (problem) {
        console.error(problem);
        this.close("The player crashed. Reload the page, and please report it with the recording.");
      }
    });
  }

  private frame(now: number): void {
    const { recorded, picture, scene, timeline } = this;
    const start = performance.now();
    const wall = Math.min(LONGEST, now - this.last || 16);
    if (this.wanted !== undefined) {
      recorded.seek(this.wanted);
      this.wanted = undefined;
      this.forget();
    }
    recorded.frame(timeline.held ? 0 : wall);
    const pace = recorded.playing && !timeline.held ? recorded.speed : 0;
    this.played += wall * pace;
    picture.read(recorded);
    for (const event of recorded.events()) this.take(event);
    this.look(now, wall / 1_000, Math.max(1, pace));
    scene.draw(picture, this.names, 0, this.played, (wall / 1_000) * pace);
    if (!this.whole) this.map.draw(picture, scene.camera, this.followed);
    this.bar.frame(recorded.now, recorded.length, recorded.playing);
    timeline.frame(recorded.now, recorded.length, this.followed);
    window.__halftrack?.frame(now - this.last || 0, performance.now() - start);
    this.last = now;
  }

  /** Another time: what was seen has nothing to do with it. */
  private forget(): void {
    this.scene.clear();
    this.feed.clear();
    this.looked = -Infinity;
  }

  /** Where the picture looks, and what is said about it. */
  private look(now: number, seconds: number, pace: number): void {
    const { scene, recorded } = this;
    if (now - this.looked > LOOK_EVERY) {
      this.looked = now;
      const people = recorded.fighters();
      this.names.clear();
      for (const { fighter, name } of people) this.names.set(fighter, name);
      this.people.fill(people, this.followed);
      if (!this.whole && this.followed === undefined) this.followed = this.people.order[0];
      this.bar.tell(this.subject(), this.whole, this.element.classList.contains("with-people"));
      this.bar.warn(this.said || this.warning());
    }
    scene.followed = this.followed;
    const tank = this.followed === undefined ? undefined : this.picture.find(this.followed);
    if (this.whole) scene.camera.cutTo(0, 0);
    else if (tank) scene.camera.follow(tank.x, tank.y, tank.heading, seconds * pace);
  }

  /** The followed fighter, and the corrections that its client has reported so far. */
  private subject(): string {
    const { followed, recorded } = this;
    if (followed === undefined) return "Press a tank or a name to follow it.";
    const counts = new Map<string, number>();
    let snapped = 0;
    let name = this.names.get(followed);
    for (const mark of recorded.marks) {
      if (mark.at_ms > recorded.now) break;
      if (mark.type !== "report" || mark.fighter !== followed) continue;
      name ??= mark.name;
      for (const [cause, count] of mark.corrections) counts.set(cause, (counts.get(cause) ?? 0) + count);
      snapped += mark.snapped;
    }
    const who = this.names.has(followed) ? name : `${name ?? nameless(followed)} (not here)`;
    if (isMachine(followed)) return `${who}: a machine, driven by the server`;
    const causes = list([...counts].sort(([, one], [, other]) => other - one) as Corrections);
    return `${who}: ${causes ? `corrected ${causes}` : "no corrections so far"}${snapped > 0 ? `; ${snapped} snapped` : ""}`;
  }

  private warning(): string {
    const { about, reading, read } = this.recorded;
    if (reading) return `Reading the recording: ${Math.floor(read * 100)} %`;
    const words = [];
    if (this.recorded.length === 0) words.push("Nobody played in this match.");
    if (about.damage) words.push(`This file is not whole: ${about.damage}.`);
    if (about.differs_ms !== null) {
      words.push("Playing it back gives another match than was recorded: it is from another version.");
    }
    return words.join(" ");
  }

  private take(event: Seen): void {
    const { scene, played } = this;
    const { effects } = scene;
    const find = (fighter: number): Tank | undefined => this.picture.find(fighter);
    if (event.type === "joined") this.names.set(event.fighter, event.name);
    else if (event.type === "fired") {
      effects.shot(...scene.muzzle({ x: event.from[0], y: event.from[1] }, event.aim), ...event.to, event.aim, played);
      effects.impact(...event.to, event.aim, played);
      scene.recoil(event.shooter);
    } else if (event.type === "rocket") {
      if (event.life === "born") effects.launch(...event.at, event.heading, played);
      else effects.burst(...event.at, played);
    } else if (event.type === "hit") {
      const tank = find(event.target);
      if (tank) effects.hit(tank.x, tank.y, played);
    } else if (event.type === "damage") {
      const tank = find(event.target);
      if (tank) effects.damage(tank.x, tank.y, event.amount, scene.palette.label, played);
    } else if (event.type === "death") {
      const tank = find(event.fighter);
      if (tank) effects.explosion(tank.x, tank.y, played);
      const named = (fighter: number) => ({ fighter, name: this.names.get(fighter) ?? nameless(fighter), own: false });
      this.feed.add(named(event.by), named(event.fighter));
    } else if (event.type === "round") {
      if (event.over) this.say(this.verdict(event.number, event.winner));
    } else if (event.type === "report" && event.fighter === this.followed) {
      const tank = find(event.fighter);
      if (tank) effects.note(tank.x, tank.y + 4.4, `corrected: ${list(event.corrections)}`, scene.palette.ghost.predicted, played);
    }
  }

  private verdict(round: number, winner: number | null): string {
    if (winner === null) return `Round ${round} is a draw.`;
    const name = this.names.get(winner);
    return name === undefined ? `Round ${round} goes to ${nameless(winner)}.` : `${name} wins round ${round}.`;
  }

  private listen(): void {
    const { signal } = this.listeners;
    addEventListener("keydown", (event) => this.press(event), { signal });
    this.host.canvas.addEventListener("pointerdown", (event) => this.pick(event), { signal });
    const makeRoom = () => {
      const box = this.bar.element.getBoundingClientRect();
      this.scene.setInsets({ top: 0, right: 0, bottom: innerHeight - box.top });
      this.element.style.setProperty("--below", `${innerHeight - box.top}px`);
    };
    const observer = new ResizeObserver(makeRoom);
    observer.observe(this.bar.element);
    addEventListener("resize", makeRoom, { signal });
    signal.addEventListener("abort", () => observer.disconnect());
    makeRoom();
  }

  /** Follows the tank that is meant. */
  private pick(event: PointerEvent): void {
    const far = ({ x, y }: Tank) => {
      const [pageX, pageY] = this.scene.onPage(x, y);
      return Math.hypot(pageX - event.clientX, pageY - event.clientY);
    };
    const tanks = this.picture.tanks.slice(0, this.picture.tankCount);
    const [nearest] = tanks.sort((one, other) => far(one) - far(other));
    if (nearest && far(nearest) < GRASP) this.follow(nearest.fighter);
  }

  private press(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target instanceof Element ? event.target : document.body;
    // Those have uses of their own for keys.
    if (on.closest("select")) return;
    if (event.code === "Space" && on.closest("button")) return;
    const { recorded } = this;
    const by = (ms: number) => (this.wanted = Math.max(0, Math.min(recorded.length, (this.wanted ?? recorded.now) + ms)));
    const keys: Record<string, () => void> = {
      Space: () => this.toggle(),
      ArrowLeft: () => by(-STEP),
      ArrowRight: () => by(STEP),
      ArrowUp: () => this.followNext(-1),
      ArrowDown: () => this.followNext(1),
      Home: () => by(-Infinity),
      End: () => by(Infinity),
      Comma: () => by(-recorded.about.tick_ms),
      Period: () => by(recorded.about.tick_ms),
      KeyF: () => this.setWhole(!this.whole),
      Escape: () => this.close(),
    };
    const act = keys[event.code];
    if (!act) return;
    event.preventDefault();
    act();
  }

  private followNext(by: 1 | -1): void {
    const { order } = this.people;
    const at = this.followed === undefined ? -by : order.indexOf(this.followed);
    const next = order[(at + by + order.length) % Math.max(1, order.length)];
    if (next !== undefined) this.follow(next);
  }
}

function title(room: string, started: number): string {
  const when = new Date(started * 1_000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  return started > 0 ? `${room}, ${when}` : room;
}
