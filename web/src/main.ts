// The page: loads, lets in, plays, and lets in again.

import "./style.css";

import { load, site as readSite } from "./client";
import type { Game } from "./client";
import { Controls } from "./controls/controls";
import { belongsTo } from "./controls/keyboard";
import { Scene } from "./draw/scene";
import { Hooks } from "./hooks";
import { Inside } from "./inside/inside";
import { Tour } from "./inside/tour";
import { Board } from "./page/board";
import { element, onPress } from "./page/dom";
import { Feed } from "./page/feed";
import { Hud } from "./page/hud";
import { keep, recall } from "./page/kept";
import { Lobby, linkTo } from "./page/lobby";
import type { Entry } from "./page/lobby";
import { Notices } from "./page/notices";
import { Themes } from "./page/theme";
import { STILL_IN, explain, isNameTaken } from "./page/words";
import { Play } from "./play";
import type { Stage } from "./play";

const hooks = (window.__halftrack = new Hooks());
const themes = new Themes();
const notices = new Notices();
const arena = element("arena", "canvas");
/** Milliseconds from one try to come in again to the next. */
const TRY_AGAIN = 1_500;

async function main(): Promise<void> {
  const loaded = Promise.all([readSite(), load(breakDown)]);
  let enter: ((entry: Entry) => void) | undefined;
  const lobby = new Lobby((entry) => enter?.(entry));
  const [config] = await loaded.catch((problem: unknown) => {
    lobby.show({ text: explain(String(problem)).text, help: "reload" });
    throw problem;
  });
  hooks.site = config.site;
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const scene = new Scene(arena, config.site.arena, themes.current, calm);
  const stage: Stage = {
    scene,
    map: element("map", "canvas"),
    controls: new Controls(arena, element("sticks")),
    hud: new Hud(),
    feed: new Feed(),
    notices,
  };
  let play: Play | undefined;
  const board = new Board(() => play?.game.players() ?? []);
  const inside = new Inside(scene, () => play?.game);
  const tour = new Tour(inside);

  themes.onChange((theme) => {
    scene.setTheme(theme);
    play?.repaint();
    inside.repaint();
    if (!play) scene.drawEmpty();
  });
  addEventListener("resize", () => {
    if (!play) requestAnimationFrame(() => scene.drawEmpty());
  });

  let tryAgain = 0;
  enter = (entry) => {
    clearTimeout(tryAgain);
    const place = JSON.stringify([entry.name, entry.room]);
    try {
      play = new Play(stage, config, entry, {
        onEnd: (problem) => {
          play = hooks.game = undefined;
          board.toggle(false);
          inside.toggle(false);
          tour.end();
          scene.drawEmpty();
          const stillIn = isNameTaken(problem) && recall("lately") === place;
          lobby.show(stillIn ? STILL_IN : problem);
          if (stillIn) tryAgain = setTimeout(() => enter?.(entry), TRY_AGAIN);
          else keep("lately", "");
        },
        onEvent: (event) => {
          hooks.event(event);
          if (event.type === "state" && event.state === "logged_in") keep("lately", place);
        },
        onGame: (game: Game) => {
          hooks.game = game;
          inside.adopt(game);
        },
      });
    } catch (problem) {
      return lobby.show(explain(String(problem)));
    }
    hooks.picture = play.picture;
    hooks.onPage = (x, y) => scene.onPage(x, y);
    history.replaceState(null, "", linkTo(entry.room));
    lobby.hide();
    ask();
    arena.focus({ preventScroll: true });
  };

  let last = NaN;
  let asked = 0;
  const frame = (now: number) => {
    asked = 0;
    if (hooks.broken || !play) return;
    ask();
    const start = performance.now();
    play.frame(now);
    board.frame(now);
    inside.frame(now);
    hooks.frame(now - last || 0, performance.now() - start);
    last = now;
    if (hooks.firstFrame === undefined && play?.picture.playing) {
      performance.mark("first-playable-frame");
      hooks.firstFrame = performance.now();
      tour.offer();
      inside.prepare();
    }
  };
  // No frames where nobody looks, or where there is nothing to be seen.
  const ask = () => {
    if (asked === 0 && !document.hidden) asked = requestAnimationFrame(frame);
  };
  document.addEventListener("visibilitychange", () => {
    cancelAnimationFrame(asked);
    asked = 0;
    last = NaN;
    if (play) ask();
  });

  // Says goodbye, or the name would be taken for whoever reloads: as early as possible, since a page that goes away may
  // get nothing out any more. Whoever stays after all is let in again.
  addEventListener("beforeunload", () => {
    if (!play) return;
    const { entry } = play;
    play.game.logout();
    tryAgain = setTimeout(() => {
      play?.leave();
      enter?.(entry);
    }, 2 * TRY_AGAIN);
  });
  addEventListener("pagehide", () => play?.game.logout());
  // A page that comes back out of the browser's store has lost its connection long ago.
  addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  onPress(element("leave", "button"), () => play?.leave());
  onPress(element("share", "button"), () => share());
  onPress(element("open-inside", "button"), () => inside.toggle(!inside.isOpen));
  listenForKeys(board, inside, () => play !== undefined);
  scene.drawEmpty();
  const known = lobby.ready(config.site);
  if (known) enter(known);
}

function listenForKeys(board: Board, inside: Inside, playing: () => boolean): void {
  addEventListener("keydown", (event) => {
    if (!playing() || event.ctrlKey || event.metaKey || event.altKey) return;
    // Tab stays what it is everywhere but in the arena itself; Escape leads out of it.
    if (event.code === "Tab" && !event.shiftKey && document.activeElement === arena) {
      event.preventDefault();
      if (!event.repeat) board.toggle(true);
    } else if (event.code === "Escape" && document.activeElement === arena) element("open-board", "button").focus();
    else if (event.code === "Escape") arena.focus();
    else if (event.code === "KeyI" && !event.repeat && !belongsTo(event)) inside.toggle(!inside.isOpen);
  });
  addEventListener("keyup", (event) => {
    if (event.code === "Tab" && document.activeElement === arena) board.toggle(false);
  });
  addEventListener("blur", () => board.toggle(false));
  let by = "";
  addEventListener("keydown", (event) => (by = event.code), true);
  addEventListener("pointerdown", () => (by = ""), true);
  arena.addEventListener("focus", () => arena.classList.toggle("reached", by === "Tab" || by === "Escape"));
  for (const over of ["blur", "keydown", "pointerdown"]) {
    arena.addEventListener(over, () => arena.classList.remove("reached"));
  }
}

async function share(): Promise<void> {
  try {
    await navigator.clipboard.writeText(location.href);
    notices.mention("The link to this room is copied: send it to somebody.");
  } catch {
    notices.mention(`The link to this room: ${location.href}`);
  }
}

function breakDown(message: string): void {
  hooks.broken = message;
  element("hud").hidden = true;
  const { text } = explain(message);
  element("lobby").hidden = false;
  const problem = element("problem");
  problem.hidden = false;
  problem.textContent = text;
  const play = element("play", "button");
  play.disabled = false;
  play.textContent = "Reload";
  play.type = "button";
  play.onclick = () => location.reload();
}

void main();
