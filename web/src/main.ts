// The page: loads, lets in, plays, and lets in again.

import "uplot/dist/uPlot.min.css";
import "./style.css";
// With the page and not with the panel: a style that could not be loaded once is not asked for again.
import "./inside/inside.css";
import "./watch/watch.css";

import { load, site as readSite } from "./client";
import type { Game, GameEvent, Site } from "./client";
import { Controls } from "./controls/controls";
import { Scene } from "./draw/scene";
import { Hooks } from "./hooks";
import { Inside } from "./inside/inside";
import { Tour } from "./inside/tour";
import { ask } from "./page/ask";
import { Board } from "./page/board";
import { element, onPress } from "./page/dom";
import { Feed } from "./page/feed";
import { Help } from "./page/help";
import { Hud } from "./page/hud";
import { keep, recall } from "./page/kept";
import { listenForKeys, showFocus } from "./page/keys";
import { Lobby, linkTo } from "./page/lobby";
import type { Entry } from "./page/lobby";
import { Notices } from "./page/notices";
import { claimSession } from "./page/session";
import { Round } from "./page/round";
import { Sound } from "./page/sound";
import { Tabs } from "./page/tabs";
import { Themes } from "./page/theme";
import { ELSEWHERE, STILL_IN, TAKEN_OVER, explain, isNameTaken } from "./page/words";
import type { Problem } from "./page/words";
import { Play } from "./play";
import type { Listener, Stage } from "./play";
import { Watch } from "./watch/watch";

/** Milliseconds from one try to come in again to the next. */
const TRY_AGAIN = 1_500;
/** Milliseconds that another tab has to leave. */
const TAKE_OVER = 500;

const hooks = (window.__halftrack = new Hooks());

class Page implements Listener {
  private readonly scene: Scene;
  private readonly stage: Stage;
  private readonly board = new Board(() => this.play?.game.fighters() ?? []);
  private readonly inside: Inside;
  private readonly tour: Tour;
  private readonly watch: Watch;
  private readonly tabs: Tabs;
  private play: Play | undefined;
  /** The frame that was asked for, zero if none, and the time of the last one. */
  private asked = 0;
  private last = NaN;
  private tryAgain = 0;

  constructor(
    private readonly config: { text: string; site: Site },
    private readonly lobby: Lobby,
    arena: HTMLCanvasElement,
    themes: Themes,
  ) {
    this.scene = new Scene(arena, config.site.arena, themes.current);
    this.stage = {
      scene: this.scene,
      map: element("map", "canvas"),
      controls: new Controls(arena, element("sticks")),
      hud: new Hud(),
      feed: new Feed(),
      notices: new Notices(),
      round: new Round(this.board),
      sound: new Sound((name) => hooks.sound(name)),
    };
    this.inside = new Inside(
      this.scene,
      () => this.play?.game,
      (text) => this.stage.notices.mention(text),
    );
    this.tour = new Tour(this.inside);
    themes.onChange((theme) => {
      this.scene.setTheme(theme);
      this.play?.repaint();
      this.inside.repaint();
      this.watch.repaint();
      this.drawIdle();
    });
    this.watch = new Watch({
      canvas: arena,
      theme: () => themes.current,
      begin: () => this.makeWay(),
      end: (problem) => this.comeBack(problem),
    });
    this.listen();
    this.tabs = new Tabs(
      () => this.play && placeOf(this.play.entry),
      () => this.play?.leave(TAKEN_OVER),
    );
    const { board, inside } = this;
    const { sound } = this.stage;
    listenForKeys(arena, { board, inside, help: new Help(), sound }, () => this.play !== undefined);
    showFocus(arena);
    this.scene.drawEmpty();
  }

  enter(entry: Entry): void {
    clearTimeout(this.tryAgain);
    try {
      this.play = new Play(this.stage, this.config, entry, this);
    } catch (problem) {
      return this.lobby.show(explain(String(problem)));
    }
    hooks.picture = this.play.picture;
    hooks.onPage = (x, y) => this.scene.onPage(x, y);
    hooks.moving = () => this.scene.effects.moving;
    keep("tab-name", entry.name);
    history.replaceState(null, "", linkTo(entry.room));
    this.lobby.hide();
    this.scene.canvas.focus({ preventScroll: true });
    this.askForFrame();
  }

  /** The player wants to play here and not in the other tab. */
  takeOver(entry: Entry): void {
    this.tabs.takeOver(placeOf(entry));
    // The server needs a moment to hear of it: until then, the name is still taken.
    keep("lately", placeOf(entry));
    setTimeout(() => this.enter(entry), TAKE_OVER);
  }

  /** A recording takes the arena, if the player agrees to leave the match. */
  private async makeWay(): Promise<boolean> {
    if (this.play && !(await ask("Leave this match to watch the recording?", "Leave and watch", "Keep playing"))) return false;
    this.play?.leave();
    clearTimeout(this.tryAgain);
    this.lobby.hide();
    return true;
  }

  private comeBack(problem: string | undefined): void {
    if (this.play) return this.stage.notices.mention(problem ?? "");
    this.drawIdle();
    this.lobby.show(problem === undefined ? undefined : { text: problem, help: "name" });
  }

  /** The arena alone, when nobody else draws it. */
  private drawIdle(): void {
    if (!this.play && !this.watch.isOpen) this.scene.drawEmpty();
  }

  onGame(game: Game): void {
    hooks.game = game;
    this.inside.adopt(game);
  }

  onEvent(event: GameEvent): void {
    hooks.event(event);
    if (event.type === "state" && event.state === "logged_in" && this.play) keep("lately", placeOf(this.play.entry));
  }

  onEnd(problem: Problem | undefined, entry: Entry): void {
    this.play = hooks.game = undefined;
    this.board.toggle(false);
    this.inside.toggle(false);
    this.tour.end();
    this.scene.drawEmpty();
    if (isNameTaken(problem)) void this.findOwner(problem, entry);
    else {
      this.lobby.show(problem);
      keep("lately", "");
    }
  }

  /** The name is taken: by this player in another tab, by its own session from before a reload, or by someone else. */
  private async findOwner(problem: Problem | undefined, entry: Entry): Promise<void> {
    const elsewhere = await this.tabs.isElsewhere(placeOf(entry));
    if (this.play || this.watch.isOpen) return;
    const stillIn = !elsewhere && recall("lately") === placeOf(entry);
    this.lobby.show(elsewhere ? ELSEWHERE : stillIn ? STILL_IN : problem);
    if (stillIn) this.tryAgain = setTimeout(() => this.enter(entry), TRY_AGAIN);
    else keep("lately", "");
  }

  /** No frames where nobody looks, or where there is nothing to be seen. */
  private askForFrame(): void {
    if (this.asked === 0 && !document.hidden) this.asked = requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    this.asked = 0;
    if (hooks.broken || !this.play) return;
    this.askForFrame();
    const start = performance.now();
    this.play.frame(now);
    this.board.frame(now);
    this.inside.frame(now);
    hooks.frame(now - this.last || 0, performance.now() - start);
    this.last = now;
    if (hooks.firstFrame === undefined && this.play?.picture.playing) {
      performance.mark("first-playable-frame");
      hooks.firstFrame = performance.now();
      this.tour.offer();
      this.inside.prepare();
    }
  }

  private listen(): void {
    addEventListener("resize", () => {
      requestAnimationFrame(() => this.drawIdle());
    });
    document.addEventListener("visibilitychange", () => {
      cancelAnimationFrame(this.asked);
      this.asked = 0;
      this.last = NaN;
      if (this.play) this.askForFrame();
    });
    addEventListener("beforeunload", () => this.sayGoodbye());
    addEventListener("pagehide", () => this.play?.game.logout());
    // A page that comes back out of the browser's store has lost its connection long ago.
    addEventListener("pageshow", (event) => {
      if (event.persisted) location.reload();
    });
    onPress(element("leave", "button"), () => this.play?.leave());
    onPress(element("share", "button"), () => void this.share());
    onPress(element("open-inside", "button"), () => this.inside.toggle(!this.inside.isOpen));
  }

  /** Without it, the name would be taken after a reload. As early as possible: a page that goes away may get nothing out any
   *  more. A player that stays after all is let in again. */
  private sayGoodbye(): void {
    if (!this.play) return;
    const { entry, game } = this.play;
    game.logout();
    this.tryAgain = setTimeout(() => {
      this.play?.leave();
      this.enter(entry);
    }, 2 * TRY_AGAIN);
  }

  private async share(): Promise<void> {
    const { notices } = this.stage;
    try {
      await navigator.clipboard.writeText(location.href);
      notices.mention("The link to this room is copied. Send it to a friend.");
    } catch {
      notices.mention(`The link to this room: ${location.href}`);
    }
  }
}

function placeOf(entry: Entry): string {
  return JSON.stringify([entry.name, entry.room]);
}

async function main(): Promise<void> {
  const themes = new Themes();
  let page: Page | undefined;
  const lobby = new Lobby(
    (entry) => page?.enter(entry),
    (entry) => page?.takeOver(entry),
  );
  const broken = (message: string) => {
    hooks.broken = message;
    element("hud").hidden = true;
    lobby.show(explain(message));
  };
  try {
    const [config] = await Promise.all([readSite(), load(broken), claimSession()]);
    hooks.site = config.site;
    page = new Page(config, lobby, element("arena", "canvas"), themes);
    const known = lobby.ready(config.site);
    if (known) page.enter(known);
  } catch (problem) {
    lobby.show({ text: explain(String(problem)).text, help: "reload" });
  }
}

void main();
