// The inside view: what is set on the link and on the client, and whether it is looked at. The panel itself is loaded when
// it is wanted first, so that playing does not wait for it.

import type { Game, Switch } from "../client";
import type { Ghosts } from "../draw/ghosts";
import type { Scene } from "../draw/scene";
import { element } from "../page/dom";
import type { Panel } from "./panel";
import { NONE } from "./plans";
import type { Link } from "./plans";

/** Pixels of the page, from below, that the sticks take of an upright phone. */
const STICKS = 180;

export class Inside {
  link: Link = NONE;
  readonly switches: Record<Switch, boolean> = {
    prediction: true,
    reconciliation: true,
    smoothing: true,
    interpolation: true,
    subtick: true,
  };
  readonly ghosts: Ghosts = { authoritative: true, predicted: true, visible: false, truth: true, path: true };
  /** Starts the tour again; set by the tour. */
  startTour: () => void = () => {};
  isOpen = false;
  private panel: Panel | undefined;
  private loading: Promise<Panel> | undefined;
  private readonly aside = element("inside", "aside");
  private readonly button = element("open-inside", "button");

  constructor(
    private readonly scene: Scene,
    readonly game: () => Game | undefined,
    private readonly tell: (text: string) => void,
  ) {
    new ResizeObserver(() => this.makeRoom()).observe(this.aside);
    new MutationObserver(() => this.makeRoom()).observe(element("sticks"), { attributes: true });
    addEventListener("resize", () => this.makeRoom());
  }

  /** Fetches the panel while nothing else is to be done. */
  prepare(): void {
    const idle = window.requestIdleCallback ?? ((then: () => void) => setTimeout(then, 1_500));
    // A server that is just gone is asked again when the panel is wanted.
    idle(() => void this.load().catch(() => {}));
  }

  toggle(open: boolean): void {
    if (open === this.isOpen) return;
    this.isOpen = open;
    this.button.setAttribute("aria-expanded", String(open));
    document.documentElement.toggleAttribute("data-inside", open);
    this.showGhosts();
    if (!open) this.aside.hidden = true;
    else {
      const show = (panel: Panel) => {
        this.aside.hidden = !this.isOpen;
        panel.opened();
        this.makeRoom();
      };
      void this.load().then(show, () => {
        this.toggle(false);
        this.tell("The inside view could not be loaded. Try again, or reload the page.");
      });
    }
    this.makeRoom();
  }

  frame(now: number): void {
    if (this.isOpen) this.panel?.frame(now);
  }

  repaint(): void {
    this.panel?.repaint();
  }

  /** Sets on a new client what was set on the one before. */
  adopt(game: Game): void {
    game.setLink("both", this.link);
    for (const [name, on] of Object.entries(this.switches)) game.setSwitch(name as Switch, on);
    game.showPath(this.isOpen && this.ghosts.path);
    this.panel?.forget();
  }

  setLink(link: Link): void {
    this.link = link;
    this.game()?.setLink("both", link);
    this.changed();
  }

  setSwitch(name: Switch, on: boolean): void {
    this.switches[name] = on;
    this.game()?.setSwitch(name, on);
    this.changed();
  }

  showGhosts(): void {
    this.scene.ghosts = this.isOpen ? this.ghosts : undefined;
    this.game()?.showPath(this.isOpen && this.ghosts.path);
  }

  private changed(): void {
    const { delay_ms, jitter_ms, loss } = this.link;
    const bad = delay_ms + jitter_ms + loss > 0 || Object.values(this.switches).includes(false);
    // Whoever closes the panel is reminded that something is not as it is.
    this.button.classList.toggle("altered", bad);
    this.panel?.sync();
  }

  private async load(): Promise<Panel> {
    this.loading ??= import("./panel").then(({ Panel }) => (this.panel = new Panel(this.aside, this)));
    try {
      return await this.loading;
    } catch (problem) {
      this.loading = undefined;
      throw problem;
    }
  }

  /** The arena and what lies over it use what the panel leaves free. */
  private makeRoom(): void {
    const box = this.aside.getBoundingClientRect();
    const shown = this.isOpen && !this.aside.hidden && box.width > 0;
    const below = shown && box.width >= innerWidth * 0.9;
    const right = shown && !below ? innerWidth - box.left : 0;
    const bottom = below ? innerHeight - box.top : 0;
    const { style } = document.documentElement;
    style.setProperty("--taken-right", `${right}px`);
    style.setProperty("--taken-bottom", `${bottom}px`);
    // Thumbs lie on the sticks: the tank is not to be under them.
    const sticks = element("sticks").hidden || innerWidth > innerHeight ? 0 : STICKS;
    this.scene.setInsets({ right, bottom: Math.max(bottom, sticks) });
  }
}
