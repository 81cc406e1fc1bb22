// Five plots of the last minute. One is drawn in a frame, so that no frame pays for all of them.

import uPlot from "uplot";

import type { Cause } from "../client";
import { make, write } from "../page/dom";
import { SPAN } from "./history";
import type { History, Moment } from "./history";
import { term } from "./term";

/** Metres: corrections are drawn by their order of magnitude, from a centimetre to the whole arena. */
const [LEAST, MOST] = [0.01, 100];

/** In the order of the legend. Colours differ in lightness as well as in hue. */
export const CAUSES: readonly [cause: Cause, label: string, colour: [dark: string, light: string]][] = [
  ["collision", "collision", ["#f2b33d", "#8a5a00"]],
  ["late_input", "late input", ["#4fd0e8", "#00698a"]],
  ["lost_input", "lost input", ["#7d9bff", "#3346b8"]],
  ["death", "death", ["#b9c4c4", "#5c5747"]],
  ["respawn", "respawn", ["#67c587", "#1d7040"]],
  ["teleport", "teleport", ["#e59be0", "#94308c"]],
  ["params", "parameters", ["#c9d36a", "#5f6600"]],
  ["world", "world", ["#8fd0a0", "#2c6b45"]],
  ["other_input", "another's input", ["#f0a07a", "#9a4a1c"]],
  ["resync", "resync", ["#c79bff", "#6b35b8"]],
  ["unexplained", "unexplained", ["#ff5b4a", "#c41c10"]],
];

interface Line {
  label: string;
  colour: string;
  of: (moment: Moment) => number | null;
  show: (value: number) => string;
  /** Which axis; the left one is the first's. */
  scale?: string;
}

interface Plot {
  chart: uPlot;
  values: (history: History, now: number) => uPlot.AlignedData;
  legend: (history: History) => void;
}

export class Plots {
  private plots: Plot[] = [];
  private next = 0;
  private pending = 0;

  constructor(private readonly parent: HTMLElement) {
    new ResizeObserver(() => this.resize()).observe(parent);
    this.build();
  }

  /** In the colours of the theme. */
  build(): void {
    for (const { chart } of this.plots) chart.destroy();
    this.parent.replaceChildren();
    const style = getComputedStyle(document.documentElement);
    const colour = (name: string) => style.getPropertyValue(`--${name}`).trim();
    const ms = (value: number) => `${value.toFixed(Math.abs(value) < 10 ? 1 : 0)} ms`;
    const [one, other] = [colour("predicted"), colour("accent")];
    const bytes = (value: number) => `${Math.round(value)} B/s`;
    const kilobytes = (value: number) => `${value / 1_000} kB/s`;
    this.plots = [
      this.corrections(),
      this.lines("Lead and margin", "ms", [
        { label: "lead", colour: one, of: (moment) => moment.lead, show: ms },
        { label: "margin", colour: other, of: (moment) => moment.margin, show: ms },
      ]),
      this.lines("Round trip and jitter", "ms", [
        { label: "round trip", colour: one, of: (moment) => moment.rtt, show: ms },
        { label: "jitter", colour: other, of: (moment) => moment.jitter, show: ms },
      ]),
      this.lines("Other tanks: delay, and held", "ms", [
        { label: "delay", colour: one, of: (moment) => moment.remoteDelay, show: ms },
        {
          label: "held",
          colour: colour("bad"),
          of: (moment) => moment.held,
          show: (value) => `${value.toFixed(1)} %`,
          scale: "%",
        },
      ]),
      this.lines("Traffic", kilobytes, [
        { label: "down", colour: one, of: (moment) => moment.down, show: bytes },
        { label: "up", colour: other, of: (moment) => moment.up, show: bytes },
      ]),
    ];
  }

  /** There is something new to draw. */
  renew(): void {
    this.pending = this.plots.length;
  }

  frame(history: History, now: number): void {
    if (this.pending === 0) return;
    this.pending -= 1;
    this.next = (this.next + 1) % this.plots.length;
    const plot = this.plots[this.next];
    plot?.chart.setData(plot.values(history, now));
    plot?.legend(history);
  }

  private resize(): void {
    for (const { chart } of this.plots) {
      const body = chart.root.parentElement;
      const [width, height] = [body?.clientWidth ?? 0, body?.clientHeight ?? 0];
      if (width > 0 && (chart.width !== width || chart.height !== height)) chart.setSize({ width, height });
    }
  }

  private figure(title: string): { body: HTMLElement; legend: HTMLElement } {
    const [legend, body] = [make("span", "legend"), make("div", "chart")];
    this.parent.append(make("figure", "", make("figcaption", "", make("span", "", title), legend), body));
    return { body, legend };
  }

  private options(series: uPlot.Series[], axes: uPlot.Axis[]): uPlot.Options {
    return {
      width: Math.max(200, this.parent.clientWidth),
      height: 104,
      padding: [6, 16, 0, 0],
      cursor: { show: false },
      legend: { show: false },
      scales: {
        x: { time: false, range: [-SPAN, 0] },
        // Never so near that noise looks like an event.
        y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.15)] },
        metres: { distr: 3, range: [LEAST / 1.6, MOST * 1.6] },
        "%": { range: (_, _low, high) => [0, Math.max(10, high ?? 0)] },
      },
      axes: [this.timeAxis(), ...axes],
      series: [{}, ...series],
    };
  }

  private axis(more: Partial<uPlot.Axis> = {}): uPlot.Axis {
    const style = getComputedStyle(document.documentElement);
    const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
    return {
      stroke: of("quiet"),
      grid: { stroke: of("line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui, sans-serif",
      size: 54,
      gap: 4,
      space: 26,
      ...more,
    };
  }

  /** Seconds before now. */
  private timeAxis(): uPlot.Axis {
    const splits = [-60, -45, -30, -15, 0];
    const values = splits.map((at) => (at === 0 ? "now" : `${at} s`));
    return this.axis({ size: 20, splits: () => splits, values: () => values, filter: (_, all) => all });
  }

  /** `unit` is of the left axis. */
  private lines(title: string, unit: string | ((value: number) => string), lines: readonly Line[]): Plot {
    const { body, legend } = this.figure(title);
    const labels = lines.map((line) => legendEntry(legend, line.label, line.colour));
    const series = lines.map(({ colour, scale }) => ({
      stroke: colour,
      width: 1.75,
      scale: scale ?? "y",
      points: { show: false },
      spanGaps: false,
    }));
    const label = typeof unit === "string" ? (value: number) => `${value} ${unit}` : unit;
    const axes = [this.axis({ values: (_, splits) => splits.map(label) })];
    if (lines.some((line) => line.scale === "%")) {
      const values = (_: uPlot, splits: number[]) => splits.map((value) => `${value} %`);
      axes.push(this.axis({ scale: "%", side: 1, grid: { show: false }, size: 44, values }));
    }
    const chart = new uPlot(this.options(series, axes), [[], ...lines.map(() => [])] as uPlot.AlignedData, body);
    return {
      chart,
      values: ({ moments }, now) => [
        moments.map(({ at }) => (at - now) / 1_000),
        ...lines.map((line) => moments.map(line.of)),
      ],
      legend: ({ moments }) => {
        const newest = moments.at(-1);
        for (const [index, line] of lines.entries()) {
          const value = newest && line.of(newest);
          const label = labels[index];
          if (label) write(label, value === null || value === undefined ? "–" : line.show(value));
        }
      },
    };
  }

  /** One point for each, as high as it was large. */
  private corrections(): Plot {
    const { body, legend } = this.figure("Corrections by cause");
    const theme = document.documentElement.dataset.theme === "light" ? 1 : 0;
    const labels = CAUSES.map(([, label, colours]) => legendEntry(legend, label, colours[theme]));
    const series = CAUSES.map(([, , colours]) => ({
      scale: "metres",
      stroke: colours[theme],
      paths: () => null,
      points: { show: true, size: 6, fill: colours[theme], stroke: colours[theme] },
    }));
    const axis = this.axis({
      scale: "metres",
      splits: [LEAST, 0.1, 1, 10, MOST],
      filter: (_, splits) => splits,
      values: (_, splits) => splits.map((value) => `${value} m`),
    });
    const chart = new uPlot(this.options(series, [axis]), [[], ...CAUSES.map(() => [])] as uPlot.AlignedData, body);
    return {
      chart,
      values: (history, now) => [
        history.corrections.map(({ at_ms }) => (at_ms - now) / 1_000),
        ...CAUSES.map(([cause]) => history.sizes(cause).map((size) => size && Math.max(LEAST, Math.min(MOST, size)))),
      ],
      legend: (history) => {
        for (const [index, [cause]] of CAUSES.entries()) {
          // Only causes that occurred: nine words would fill the line.
          const entry = labels[index]?.parentElement;
          if (entry) entry.hidden = !history.corrections.some((correction) => correction.cause === cause);
        }
      },
    };
  }
}

function legendEntry(legend: HTMLElement, label: string, colour: string): HTMLElement {
  const swatch = make("i");
  swatch.style.background = colour;
  const [word, meaning] = term(label);
  const value = make("span", "number");
  legend.append(make("span", "entry", swatch, word, " ", value, ...(meaning ? [meaning] : [])));
  return value;
}
