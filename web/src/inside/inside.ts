// The inside view: the settings of the link and of the client, and whether the panel is open. The panel itself is loaded
// when it is first opened, so that playing does not wait for it.

import type { Game, Switch } from "../client";
import type { Ghosts } from "../draw/ghosts";
import type { Scene } from "../draw/scene";
import { element, onPress, write } from "../page/dom";
import type { Panel } from "./panel";
import { NONE, PLANS, SWITCHES } from "./plans";
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
  readonly ghosts: Ghosts = { authoritative: true, predicted: true, visible: false, truth: true, path: true, group: true };
  /** Starts the tour again; set by the tour. */
  startTour: () => void = () => {};
  isOpen = false;
  private panel: Panel | undefined;
  private loading: Promise<Panel> | undefined;
  private readonly aside = element("inside", "aside");
  private readonly button = element("open-inside", "button");
  private readonly chip = element("altered");
  private readonly tour = element("tour", "section");
  private readonly gauge = element("own");

  constructor(
    private readonly scene: Scene,
    readonly game: () => Game | undefined,
    private readonly tell: (text: string) => void,
  ) {
    const observer = new ResizeObserver(() => this.makeRoom());
    observer.observe(this.aside);
    observer.observe(this.tour);
    observer.observe(this.gauge);
    onPress(element("altered-open", "button"), () => this.toggle(true));
    onPress(element("altered-reset", "button"), () => this.reset());
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
    this.showChip();
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

  /** Gives a new client the settings of the one before. */
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

  /** The network as it is, and everything at work. */
  reset(): void {
    for (const [name] of SWITCHES) this.setSwitch(name, true);
    this.setLink(NONE);
  }

  showGhosts(): void {
    this.scene.ghosts = this.isOpen ? this.ghosts : undefined;
    this.game()?.showPath(this.isOpen && this.ghosts.path);
  }

  private changed(): void {
    this.showChip();
    this.panel?.sync();
  }

  /** Altered settings, while the panel that shows them is closed. */
  private showChip(): void {
    const altered = this.altered();
    this.button.classList.toggle("altered", altered.length > 0);
    this.chip.hidden = this.isOpen || altered.length === 0;
    write(element("altered-open", "button"), altered.join(" · "));
  }

  private altered(): string[] {
    const { delay_ms, jitter_ms, loss } = this.link;
    const off = SWITCHES.filter(([name]) => !this.switches[name]).map(([, label]) => `${label} off`);
    if (delay_ms + jitter_ms + loss === 0) return off;
    const same = ([, plan]: (typeof PLANS)[number]) => plan.delay_ms === delay_ms && plan.jitter_ms === jitter_ms && plan.loss === loss;
    const parts = [delay_ms > 0 && `+${2 * delay_ms} ms`, jitter_ms > 0 && "jitter", loss > 0 && `${+(loss * 100).toFixed(1)} % loss`];
    return [`Network: ${PLANS.find(same)?.[0] ?? parts.filter(Boolean).join(", ")}`, ...off];
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

  /** The arena and the plates over it use the space that panel and tour leave free. */
  private makeRoom(): void {
    const box = this.aside.getBoundingClientRect();
    const shown = this.isOpen && !this.aside.hidden && box.width > 0;
    const below = shown && box.width >= innerWidth * 0.9;
    const right = shown && !below ? innerWidth - box.left : 0;
    const bottom = below ? innerHeight - box.top : 0;
    const { style } = document.documentElement;
    style.setProperty("--taken-right", `${right}px`);
    style.setProperty("--taken-bottom", `${bottom}px`);
    // The tour's card takes the top: a tank in the free part is never under it.
    const card = this.tour.hidden ? 0 : this.tour.getBoundingClientRect().bottom;
    style.setProperty("--taken-top", `${card}px`);
    // Nor under the hit points, which are at the top of an upright phone.
    const gauge = this.gauge.getBoundingClientRect();
    const top = Math.max(card, gauge.bottom < innerHeight / 2 ? gauge.bottom : 0);
    // Thumbs lie on the sticks: the tank is not to be under them.
    const sticks = element("sticks").hidden || innerWidth > innerHeight ? 0 : STICKS;
    this.scene.setInsets({ top, right, bottom: Math.max(bottom, sticks) });
  }
}
