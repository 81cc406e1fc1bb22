// Colours of the canvas by theme, and of fighters. The colours of the page are in style.css.

import { isMachine } from "../fighter";

export type Theme = "dark" | "light";

export interface Palette {
  outside: string;
  ground: string;
  /** Blotches of the ground: hue of earth that is wet, dry, and overgrown. */
  blotches: readonly string[];
  speckDark: string;
  speckLight: string;
  tuft: string;
  survey: string;
  paint: string;
  wall: readonly [top: string, lit: string, dim: string];
  pillar: readonly [rim: string, lit: string, dim: string];
  shadow: string;
  track: string;
  smoke: string;
  label: string;
  /** Of a machine. */
  machineLabel: string;
  labelEdge: string;
  barBack: string;
  good: string;
  bad: string;
  tracer: string;
  aim: string;
  ring: string;
  ghost: Record<"authoritative" | "predicted" | "visible" | "truth" | "path" | "group", string>;
}

export const PALETTES: Record<Theme, Palette> = {
  dark: {
    outside: "#0c1113",
    ground: "#2c3a36",
    blotches: ["#22302f", "#39493a", "#3d4136", "#26343a", "#33463b"],
    speckDark: "rgb(0 0 0 / 22%)",
    speckLight: "rgb(255 255 255 / 7%)",
    tuft: "rgb(120 150 96 / 38%)",
    survey: "rgb(190 215 220 / 9%)",
    paint: "rgb(242 179 61 / 22%)",
    wall: ["#5b6c73", "#83969d", "#364349"],
    pillar: ["#47565c", "#8b9ca2", "#4d5d64"],
    shadow: "rgb(0 0 0 / 62%)",
    track: "10 15 17",
    smoke: "#14181a",
    label: "#eef3f0",
    machineLabel: "#9cc7dd",
    labelEdge: "rgb(8 12 13 / 85%)",
    barBack: "rgb(8 12 13 / 78%)",
    good: "#67c587",
    bad: "#ff6b5b",
    tracer: "#ffe9b0",
    aim: "rgb(255 233 176 / 70%)",
    ring: "#f2b33d",
    ghost: {
      authoritative: "#ff8a5c",
      predicted: "#4fd0e8",
      visible: "#f5f7f2",
      truth: "#c79bff",
      path: "#9be36b",
      group: "#5ee6c5",
    },
  },
  light: {
    outside: "#a99d80",
    ground: "#d9ceb2",
    blotches: ["#cbbd98", "#e6dec8", "#bfc296", "#d4c2a0", "#c9c8a0"],
    speckDark: "rgb(90 70 30 / 14%)",
    speckLight: "rgb(255 255 255 / 30%)",
    tuft: "rgb(110 124 58 / 50%)",
    survey: "rgb(90 75 40 / 12%)",
    paint: "rgb(255 255 255 / 55%)",
    wall: ["#b5aa94", "#efe8d8", "#837963"],
    pillar: ["#8f856f", "#e9e1cf", "#a1967e"],
    shadow: "rgb(60 45 15 / 45%)",
    track: "95 78 45",
    smoke: "#57524a",
    label: "#201e17",
    machineLabel: "#2c5a78",
    labelEdge: "rgb(255 253 245 / 88%)",
    barBack: "rgb(50 42 25 / 55%)",
    good: "#2f9457",
    bad: "#cf3a2c",
    tracer: "#fff3cf",
    aim: "rgb(70 45 0 / 60%)",
    ring: "#7a4d00",
    ghost: {
      authoritative: "#b23c0a",
      predicted: "#00698a",
      visible: "#23211a",
      truth: "#6b35b8",
      path: "#3c6e12",
      group: "#00705a",
    },
  },
};

export const OWN_COLOUR = "#f2b33d";
/** At least 29 apart in CIE Lab from each other and from the own one. Many differ in lightness too, for eyes that mix up red
 *  and green. */
const COLOURS = [
  "#d8544a",
  "#226beb",
  "#6fb06b",
  "#c8d2e4",
  "#9637b4",
  "#47aeba",
  "#e0730f",
  "#d1d880",
  "#e07fae",
  "#296893",
  "#f1b397",
  "#798909",
  "#77a0f0",
  "#8a581a",
  "#68e7c1",
  "#de1060",
  "#3b6e4a",
  "#e193f8",
  "#71c53d",
  "#917b84",
] as const;

/** The colour of each fighter, as an index. Player numbers only go up, so a remainder would give colours twice. */
const taken = new Map<number, number>();

/** A fighter's colour: no other one's, up to twenty of them. Players that saw the same joins see the same colours of players.
 *  Machines take the rest. */
export function colourOf(fighter: number, own: boolean): string {
  if (own) return OWN_COLOUR;
  const colour = taken.get(fighter) ?? choose(fighter);
  return COLOURS[colour] ?? COLOURS[0];
}

function choose(fighter: number): number {
  const machine = isMachine(fighter);
  const used = new Set([...taken].filter(([other]) => machine || !isMachine(other)).map(([, colour]) => colour));
  const wished = Math.floor(fighter / 2) % COLOURS.length;
  const free = COLOURS.map((_, index) => (wished + index) % COLOURS.length).find((index) => !used.has(index));
  const colour = free ?? wished;
  // A machine that has it chooses another.
  for (const [other, its] of taken) if (!machine && isMachine(other) && its === colour) taken.delete(other);
  taken.set(fighter, colour);
  return colour;
}

/** The fighter has left. */
export function freeColour(fighter: number): void {
  taken.delete(fighter);
}

/** Another match. */
export function freeColours(): void {
  taken.clear();
}
