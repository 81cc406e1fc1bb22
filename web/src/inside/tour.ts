// The tour: a minute in which a player feels the use of prediction. Offered once, and again from the panel.

import { element, onPress, write } from "../page/dom";
import { keep, recall } from "../page/kept";
import type { Inside } from "./inside";
import { NONE } from "./plans";

interface Step {
  title: string;
  text: string;
  next: string;
  begin: (inside: Inside) => void;
}

const FAR = { ...NONE, delay_ms: 100 };

const STEPS: readonly Step[] = [
  {
    title: "New here? Feel it in a minute.",
    text: "The tour makes the network of this page bad on purpose, and shows how the game hides it. You drive all the time.",
    next: "Start the tour",
    begin: () => {},
  },
  {
    title: "200 ms, prediction off",
    text: "The server is now a fifth of a second away, and your tank waits for its answer. Drive and turn: it feels like ice.",
    next: "Now with prediction",
    begin: (inside) => {
      inside.setLink(FAR);
      inside.setSwitch("prediction", false);
    },
  },
  {
    title: "200 ms, prediction on",
    text: "The same network. Your tank reacts in the next frame: the page runs the server's own rules ahead of the server.",
    next: "Show me how",
    begin: (inside) => {
      inside.setLink(FAR);
      inside.setSwitch("prediction", true);
    },
  },
  {
    title: "What the server knows",
    text: "The solid outline is your tank in the newest state from the server. The dots are your input that it has not answered yet. Drive: your tank is a round trip ahead.",
    next: "What to look at",
    begin: (inside) => {
      inside.setLink(FAR);
      inside.setSwitch("prediction", true);
      inside.toggle(true);
    },
  },
  {
    title: "What to look at",
    text: "Your network is normal again. Set it to mobile and fight: each correction has a cause, and “unexplained” stays 0. Turn parts off to see what each does, or cut the connection.",
    next: "Done",
    begin: (inside) => {
      inside.setLink(NONE);
      inside.setSwitch("prediction", true);
      inside.toggle(true);
    },
  },
];

export class Tour {
  private readonly card = element("tour");
  private readonly next = element("tour-next", "button");
  private readonly back = element("tour-back", "button");
  private at = 0;

  constructor(private readonly inside: Inside) {
    onPress(this.next, () => (this.at + 1 < STEPS.length ? this.show(this.at + 1) : this.end()));
    onPress(this.back, () => (this.at === 0 ? this.end() : this.show(Math.max(1, this.at - 1))));
    onPress(element("tour-close", "button"), () => this.end());
    addEventListener("keydown", (event) => {
      if (event.code === "Escape" && this.card.contains(document.activeElement)) this.end();
    });
    inside.startTour = () => this.show(1);
  }

  /** On the first visit. */
  offer(): void {
    if (recall("tour") === undefined) this.show(0);
  }

  end(): void {
    if (this.card.hidden) return;
    this.card.hidden = true;
    keep("tour", "seen");
    // A player that stops half way plays on with a good network.
    if (this.at > 0) {
      this.inside.setLink(NONE);
      this.inside.setSwitch("prediction", true);
    }
  }

  private show(at: number): void {
    const step = STEPS[at];
    if (!step) return;
    this.at = at;
    step.begin(this.inside);
    this.card.hidden = false;
    write(element("tour-step", "p"), at === 0 ? "One minute" : `${at} of ${STEPS.length - 1}`);
    write(element("tour-title", "h2"), step.title);
    write(element("tour-text", "p"), step.text);
    write(this.next, step.next);
    write(this.back, at === 0 ? "Not now" : "Back");
    this.back.hidden = at === 1;
  }
}
