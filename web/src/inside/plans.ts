// The networks of the lab, one way: what plans/*.toml say under [link].

import type { LinkSettings, Switch } from "../client";
import type { Ghost } from "../draw/ghosts";

export type Link = Required<Pick<LinkSettings, "delay_ms" | "jitter_ms" | "loss" | "burst">>;

export const NONE: Link = { delay_ms: 0, jitter_ms: 0, loss: 0, burst: 1 };
export const PLANS: readonly [name: string, link: Link][] = [
  ["as it is", NONE],
  ["lan", { delay_ms: 0.5, jitter_ms: 0.1, loss: 0, burst: 1 }],
  ["broadband", { delay_ms: 20, jitter_ms: 3, loss: 0.001, burst: 1 }],
  ["wifi", { delay_ms: 15, jitter_ms: 12, loss: 0.01, burst: 2 }],
  ["transatlantic", { delay_ms: 50, jitter_ms: 5, loss: 0.005, burst: 1 }],
  ["mobile", { delay_ms: 60, jitter_ms: 25, loss: 0.03, burst: 3 }],
];

export const SLIDERS: readonly {
  key: "delay_ms" | "jitter_ms" | "loss";
  label: string;
  max: number;
  step: number;
  show: (value: number) => string;
}[] = [
  { key: "delay_ms", label: "Delay", max: 250, step: 0.5, show: (value) => `${value} ms` },
  { key: "jitter_ms", label: "Jitter", max: 60, step: 0.1, show: (value) => `${value} ms` },
  { key: "loss", label: "Loss", max: 0.2, step: 0.001, show: (value) => `${+(value * 100).toFixed(1)} %` },
];

export const SWITCHES: readonly [name: Switch, label: string, off: string][] = [
  ["prediction", "Prediction", "off: your tank answers a round trip late"],
  ["reconciliation", "Reconciliation", "off: your tank drifts from the server's"],
  ["smoothing", "Smoothing", "off: corrections are jumps"],
  ["interpolation", "Interpolation", "off: others move in steps of a tick"],
  ["subtick", "Sub-tick input", "off: keys wait for the next tick"],
];

export const GHOSTS: readonly [name: Ghost, label: string][] = [
  ["authoritative", "you, as the server last said"],
  ["predicted", "you, as predicted"],
  ["visible", "you, as shown: prediction plus what is left of a correction"],
  ["path", "input that the server has not answered yet"],
  ["truth", "others, as the server last said"],
];
