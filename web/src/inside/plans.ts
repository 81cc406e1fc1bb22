// The lab's networks, one way: as in plans/*.toml under [link]. And the words of the panel.

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
  ["prediction", "Prediction", "off: your tank reacts a round trip late"],
  ["reconciliation", "Reconciliation", "off: your tank drifts away from the server's"],
  ["smoothing", "Smoothing", "off: corrections are jumps"],
  ["interpolation", "Interpolation", "off: others move once per tick"],
  ["subtick", "Sub-tick input", "off: keys wait for the next tick"],
];

export const GHOSTS: readonly [name: Ghost, label: string][] = [
  ["authoritative", "you, in the newest state from the server"],
  ["predicted", "you, as predicted"],
  ["visible", "you, as drawn: prediction plus the rest of a correction"],
  ["path", "your input that the server has not answered yet"],
  ["truth", "others, in the newest state from the server"],
  ["group", "bodies that are predicted with your tank"],
];

/** Meanings of the panel's words: shown on hover, focus or tap. */
export const MEANINGS = {
  "round trip": "Time for a message to the server and its answer: the mean of the last second.",
  lead: "How far your predicted tank is ahead of the server's clock. Just enough that your input arrives in time.",
  margin: "How early your newest input reached the server. Below zero it was late, and the server had to guess.",
  "others' delay": "How long ago the picture of other tanks is. A short delay keeps their motion exact and even.",
  delay: "How long ago the picture of other tanks is. A short delay keeps their motion exact and even.",
  unanswered: "Ticks of your input that the server has not answered yet. They are replayed on each new state.",
  corrections: "Times the server disagreed with the prediction since you joined. The causes are listed below.",
  unexplained: "Corrections without a cause. Each would be a bug, so this should stay 0.",
  "predicted with you": "Crates that you can reach, the platform under you and your rockets are predicted together with your tank, so they react at once.",
  rockets: "Your rockets fly before the server knows of them. It confirms each, or revokes it: then it never was.",
  jitter: "How unevenly messages arrive.",
  held: "Share of pictures in which another tank had to stand still because no state had arrived.",
} as const;
