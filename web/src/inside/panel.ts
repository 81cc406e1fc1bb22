// The panel of the inside view.

import type { Diagnostics } from "../client";
import { element, make, onPress, write } from "../page/dom";
import { Corrections } from "./corrections";
import { EVERY, History } from "./history";
import { Group } from "./group";
import type { Inside } from "./inside";
import { GHOSTS, PLANS, SLIDERS, SWITCHES } from "./plans";
import { Plots } from "./plots";
import { term } from "./term";

interface Fact {
  label: string;
  of: (told: Diagnostics) => string;
  alarming?: (told: Diagnostics) => boolean;
}

const ms = (value: number | null) => (value === null ? "–" : `${Math.round(value)} ms`);
const unexplained = (told: Diagnostics) => told.causes.find(([cause]) => cause === "unexplained")?.[1] ?? 0;
const FACTS: readonly Fact[] = [
  { label: "round trip", of: (told) => ms(told.sample.rtt_ms) },
  { label: "lead", of: (told) => ms(told.sample.lead_ms) },
  { label: "others' delay", of: (told) => ms(told.sample.remote_delay_ms) },
  { label: "unanswered", of: (told) => `${told.sample.pending_ticks} ticks` },
  { label: "corrections", of: (told) => String(told.sample.corrections) },
  { label: "unexplained", of: (told) => String(unexplained(told)), alarming: (told) => unexplained(told) > 0 },
];

export class Panel {
  private readonly history = new History();
  private readonly facts: HTMLElement[] = [];
  private readonly ranges: HTMLInputElement[] = [];
  private readonly outputs: HTMLOutputElement[] = [];
  private readonly plans: HTMLButtonElement[] = [];
  private readonly checks: HTMLInputElement[] = [];
  private readonly plots: Plots;
  private readonly corrections: Corrections;
  private readonly group: Group;
  private looked = -Infinity;

  constructor(
    aside: HTMLElement,
    private readonly inside: Inside,
  ) {
    const plots = make("div", "plots");
    const corrections = make("div", "corrections");
    const group = make("div", "corrections group");
    aside.replaceChildren(
      this.head(),
      this.factRow(),
      make(
        "div",
        "column",
        section("Corrections of your tank", corrections, this.reportRow()),
        section("Predicted with your tank", group),
        section("Network of this page, each way", ...this.network()),
        section("Parts of the netcode", ...this.switches()),
        section("Outlines", ...this.legend()),
      ),
      make("div", "column", section("The last minute", plots)),
    );
    this.plots = new Plots(plots);
    this.corrections = new Corrections(corrections);
    this.group = new Group(group);
    this.sync();
  }

  /** Opened: samples from while it was closed are shown too. */
  opened(): void {
    this.forget();
    this.plots.renew();
  }

  /** The samples shown are another client's. */
  forget(): void {
    const game = this.inside.game();
    if (game && this.inside.isOpen) this.history.refill(game.export(), performance.now());
    this.looked = -Infinity;
  }

  repaint(): void {
    this.plots.build();
    this.plots.renew();
  }

  frame(now: number): void {
    const game = this.inside.game();
    if (game && now - this.looked >= EVERY) {
      this.looked = now;
      const told = game.diagnostics();
      this.history.take(told);
      for (const [index, fact] of FACTS.entries()) {
        const shown = this.facts[index];
        if (!shown) continue;
        write(shown, fact.of(told));
        shown.classList.toggle("alarm", fact.alarming?.(told) ?? false);
      }
      this.corrections.show(told);
      this.group.show(told, game);
      this.plots.renew();
    }
    this.plots.frame(this.history, now);
  }

  /** Shows the settings, also those made by the tour. */
  sync(): void {
    const { link, switches } = this.inside;
    for (const [index, { key, show }] of SLIDERS.entries()) {
      const [range, output] = [this.ranges[index], this.outputs[index]];
      if (range) range.value = String(link[key]);
      if (output) output.value = show(link[key]);
    }
    for (const [index, [, plan]] of PLANS.entries()) {
      const same = SLIDERS.every(({ key }) => plan[key] === link[key]);
      this.plans[index]?.setAttribute("aria-pressed", String(same));
    }
    for (const [index, [name]] of SWITCHES.entries()) {
      const check = this.checks[index];
      if (check) check.checked = switches[name];
    }
  }

  private head(): HTMLElement {
    const tour = make("button", "plain small", "Tour");
    onPress(tour, () => this.inside.startTour());
    const save = make("button", "plain small", "Export");
    save.id = "export";
    save.title = "Download the diagnostics of this session as JSON";
    onPress(save, () => {
      const text = JSON.stringify(this.inside.game()?.export(), undefined, 1);
      if (text) download("json", new Blob([text], { type: "application/json" }));
    });
    const close = make("button", "plain small", "Close");
    onPress(close, () => this.inside.toggle(false));
    return make("header", "", make("h2", "", "Inside"), make("span", "ways", tour, save, close));
  }

  private reportRow(): HTMLElement {
    const save = make("button", "plain small", "Save a bug report");
    save.id = "report";
    save.title = "Download the last minutes of this client; `tanks flight` replays them";
    onPress(save, () => {
      const game = this.inside.game();
      const report = game?.report(`${new Date().toISOString()} ${navigator.userAgent}`);
      if (report) download("flight", new Blob([report]));
    });
    const said = "Something jumped? The report replays the last minutes exactly. It has names and moves, no secrets.";
    return make("p", "ways report", save, make("small", "quiet", said));
  }

  private factRow(): HTMLElement {
    const entries = FACTS.map(({ label }) => {
      const value = make("dd", "number", "–");
      this.facts.push(value);
      value.dataset.fact = label;
      const [word, meaning] = term(label);
      return make("div", "", make("dt", "", word), value, ...(meaning ? [meaning] : []));
    });
    return make("dl", "facts", ...entries);
  }

  private network(): HTMLElement[] {
    for (const [name, link] of PLANS) {
      const button = make("button", "plan", name);
      button.dataset.plan = name;
      onPress(button, () => this.inside.setLink(link));
      this.plans.push(button);
    }
    const sliders = SLIDERS.map(({ key, label, max, step }) => {
      const range = make("input");
      Object.assign(range, { type: "range", min: "0", max: String(max), step: String(step), id: `link-${key}` });
      const output = make("output", "number");
      output.htmlFor.add(range.id);
      range.addEventListener("input", () => this.inside.setLink({ ...this.inside.link, [key]: Number(range.value) }));
      this.ranges.push(range);
      this.outputs.push(output);
      return make("label", "slider", make("span", "", label), range, output);
    });
    const cut = make("button", "plain small", "Cut the connection");
    cut.id = "cut";
    onPress(cut, () => this.inside.game()?.cut());
    return [make("div", "plans", ...this.plans), ...sliders, make("p", "ways", cut)];
  }

  private switches(): HTMLElement[] {
    return SWITCHES.map(([name, label, off]) => {
      const check = make("input");
      Object.assign(check, { type: "checkbox", id: `switch-${name}` });
      check.setAttribute("role", "switch");
      check.addEventListener("change", () => this.inside.setSwitch(name, check.checked));
      this.checks.push(check);
      return make("label", "switch", check, make("span", "", label), make("small", "quiet", off));
    });
  }

  private legend(): HTMLElement[] {
    return GHOSTS.map(([name, label]) => {
      const check = make("input");
      Object.assign(check, { type: "checkbox", id: `ghost-${name}`, checked: this.inside.ghosts[name] });
      check.addEventListener("change", () => {
        this.inside.ghosts[name] = check.checked;
        this.inside.showGhosts();
      });
      const swatch = make("i", `swatch ${name}`);
      return make("label", "ghost", check, swatch, make("span", "", label));
    });
  }
}

/** Gives a file to the player, named after the room and the date. */
function download(extension: string, contents: Blob): void {
  const link = make("a");
  link.href = URL.createObjectURL(contents);
  const date = new Date().toISOString().slice(0, 19);
  link.download = `halftrack-${element("room", "strong").textContent}-${date}.${extension}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

function section(title: string, ...inside: HTMLElement[]): HTMLElement {
  return make("section", "", make("h3", "", title), ...inside);
}
