// How rockets, crates and platforms look. Metres, heading to the right, around the middle.

import { mix, withAlpha } from "./ground";

/** Half of a platform's side. */
const DECK = 3;
/** Half of a crate's side; what meets it meets a circle of 1.5. */
const CRATE = 1.3;

function octagon(context: CanvasRenderingContext2D, half: number, cut: number): void {
  context.beginPath();
  for (const [x, y] of [
    [-half + cut, -half],
    [half - cut, -half],
    [half, -half + cut],
    [half, half - cut],
    [half - cut, half],
    [-half + cut, half],
    [-half, half - cut],
    [-half, -half + cut],
  ] as const) {
    context.lineTo(x, y);
  }
  context.closePath();
}

/** Planks in a frame, with straps of metal. `tone` 0 to 2. */
export function paintCrate(context: CanvasRenderingContext2D, tone: number): void {
  const wood = ["#a9763f", "#94683a", "#b58549"][tone] ?? "#a9763f";
  const [dark, light] = [mix(wood, "#000000", 0.5), mix(wood, "#ffffff", 0.22)];
  octagon(context, CRATE, 0.34);
  context.fillStyle = mix(wood, "#000000", 0.2);
  context.fill();
  context.save();
  context.clip();
  const plank = 0.4;
  for (let index = -3; index <= 3; index++) {
    const y = index * plank - plank / 2;
    context.fillStyle = mix(wood, index % 2 ? "#000000" : "#ffffff", 0.09);
    context.fillRect(-CRATE, y, 2 * CRATE, plank);
    context.fillStyle = withAlpha(dark, 0.75);
    context.fillRect(-CRATE, y, 2 * CRATE, 0.05);
  }
  // The frame, lit from the upper left.
  context.lineWidth = 0.5;
  octagon(context, CRATE, 0.34);
  context.strokeStyle = mix(wood, "#000000", 0.1);
  context.stroke();
  context.restore();
  context.lineWidth = 0.05;
  octagon(context, CRATE - 0.25, 0.24);
  context.strokeStyle = dark;
  context.stroke();
  context.save();
  context.rotate(-Math.PI / 4);
  context.fillStyle = mix(wood, "#000000", 0.06);
  context.fillRect(-1.32, -0.17, 2.64, 0.34);
  context.strokeStyle = withAlpha(dark, 0.8);
  context.lineWidth = 0.05;
  context.strokeRect(-1.32, -0.17, 2.64, 0.34);
  context.restore();
  // Straps on two sides, and their bolts.
  for (const side of [-1, 1]) {
    context.fillStyle = "#6f7a7e";
    context.fillRect(side * 0.72 - 0.11, -CRATE, 0.22, 2 * CRATE);
    context.fillStyle = withAlpha("#ffffff", 0.28);
    context.fillRect(side * 0.72 - 0.11, -CRATE, 0.06, 2 * CRATE);
    context.fillStyle = "#2f3638";
    for (const y of [-1.05, 0, 1.05]) dot(context, side * 0.72, y, 0.07);
  }
  octagon(context, CRATE, 0.34);
  context.lineWidth = 0.1;
  context.strokeStyle = mix(wood, "#000000", 0.68);
  context.stroke();
  context.beginPath();
  context.moveTo(-CRATE + 0.08, CRATE - 0.4);
  context.lineTo(-CRATE + 0.08, -CRATE + 0.38);
  context.lineTo(-CRATE + 0.38, -CRATE + 0.08);
  context.lineTo(CRATE - 0.4, -CRATE + 0.08);
  context.lineWidth = 0.07;
  context.strokeStyle = withAlpha(light, 0.7);
  context.stroke();
}

/** A steel deck with a striped edge. */
export function paintPlatform(context: CanvasRenderingContext2D): void {
  const steel = "#6d7b82";
  context.beginPath();
  context.roundRect(-DECK, -DECK, 2 * DECK, 2 * DECK, 0.28);
  const gradient = context.createLinearGradient(-DECK, -DECK, DECK, DECK);
  gradient.addColorStop(0, mix(steel, "#ffffff", 0.2));
  gradient.addColorStop(1, mix(steel, "#000000", 0.18));
  context.fillStyle = gradient;
  context.fill();
  context.save();
  context.clip();
  // The edge: yellow and black, slanted.
  context.fillStyle = "#d9a52f";
  for (const [x, y, w, h] of EDGES) context.fillRect(x, y, w, h);
  context.beginPath();
  for (const [x, y, w, h] of EDGES) context.rect(x, y, w, h);
  context.clip();
  context.fillStyle = "#23282a";
  for (let at = -2 * DECK - 1; at < 2 * DECK + 1; at += 0.8) {
    context.beginPath();
    context.moveTo(at, -DECK);
    context.lineTo(at + 0.4, -DECK);
    context.lineTo(at + 0.4 + 2 * DECK, DECK);
    context.lineTo(at + 2 * DECK, DECK);
    context.fill();
  }
  context.restore();
  // Plates with a tread.
  const inner = DECK - 0.42;
  context.strokeStyle = withAlpha("#10171a", 0.5);
  context.lineWidth = 0.06;
  context.strokeRect(-inner, -inner, 2 * inner, 2 * inner);
  context.beginPath();
  context.moveTo(0, -inner);
  context.lineTo(0, inner);
  context.moveTo(-inner, 0);
  context.lineTo(inner, 0);
  context.stroke();
  context.lineWidth = 0.09;
  context.lineCap = "round";
  context.strokeStyle = withAlpha("#ffffff", 0.16);
  context.beginPath();
  for (let row = 0; row < 10; row++) {
    for (let column = 0; column < 10; column++) {
      const [x, y] = [-inner + 0.27 + column * 0.51, -inner + 0.27 + row * 0.51];
      const lean = (row + column) % 2 ? 0.11 : -0.11;
      context.moveTo(x - 0.11, y - lean);
      context.lineTo(x + 0.11, y + lean);
    }
  }
  context.stroke();
  context.fillStyle = "#2c3437";
  for (const x of [-1, 1]) for (const y of [-1, 1]) dot(context, x * (inner - 0.28), y * (inner - 0.28), 0.13);
  context.beginPath();
  context.roundRect(-DECK + 0.05, -DECK + 0.05, 2 * DECK - 0.1, 2 * DECK - 0.1, 0.25);
  context.lineWidth = 0.12;
  context.strokeStyle = "#1d2325";
  context.stroke();
}

const EDGES = [
  [-DECK, -DECK, 2 * DECK, 0.42],
  [-DECK, DECK - 0.42, 2 * DECK, 0.42],
  [-DECK, -DECK, 0.42, 2 * DECK],
  [DECK - 0.42, -DECK, 0.42, 2 * DECK],
] as const;

/** Larger than one would build it, so that it is seen. */
export function paintRocket(context: CanvasRenderingContext2D, colour: string): void {
  const dark = mix(colour, "#000000", 0.65);
  context.fillStyle = mix(colour, "#000000", 0.3);
  for (const side of [-1, 1]) {
    context.beginPath();
    context.moveTo(-0.3, side * 0.14);
    context.lineTo(-0.78, side * 0.46);
    context.lineTo(-0.78, side * 0.14);
    context.fill();
  }
  const gradient = context.createLinearGradient(0, -0.2, 0, 0.2);
  gradient.addColorStop(0, "#f4f2ea");
  gradient.addColorStop(0.5, "#d5d5cf");
  gradient.addColorStop(1, "#7f8687");
  context.fillStyle = gradient;
  context.beginPath();
  context.roundRect(-0.72, -0.19, 1.15, 0.38, 0.06);
  context.fill();
  context.fillStyle = colour;
  context.fillRect(-0.5, -0.19, 0.26, 0.38);
  context.beginPath();
  context.moveTo(0.38, -0.19);
  context.quadraticCurveTo(0.78, -0.13, 0.9, 0);
  context.quadraticCurveTo(0.78, 0.13, 0.38, 0.19);
  context.fill();
  context.lineWidth = 0.06;
  context.strokeStyle = dark;
  context.beginPath();
  context.moveTo(-0.72, -0.19);
  context.lineTo(0.38, -0.19);
  context.quadraticCurveTo(0.78, -0.13, 0.9, 0);
  context.quadraticCurveTo(0.78, 0.13, 0.38, 0.19);
  context.lineTo(-0.72, 0.19);
  context.closePath();
  context.stroke();
}

/** Behind a rocket; `flicker` 0 or 1. */
export function paintFlame(context: CanvasRenderingContext2D, flicker: number): void {
  const long = flicker === 0 ? 1.35 : 1.1;
  const glow = context.createRadialGradient(-0.95, 0, 0, -0.95, 0, 1.15);
  glow.addColorStop(0, "rgb(255 150 50 / 65%)");
  glow.addColorStop(1, "rgb(255 120 30 / 0%)");
  context.fillStyle = glow;
  context.fillRect(-2.2, -1.2, 2.5, 2.4);
  for (const [length, width, colour] of [
    [long, 0.26, "#ff7a1e"],
    [long * 0.68, 0.17, "#ffc04d"],
    [long * 0.4, 0.1, "#fff6d8"],
  ] as const) {
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(-0.68, -width);
    context.quadraticCurveTo(-0.8 - length * 0.5, -width, -0.7 - length, 0);
    context.quadraticCurveTo(-0.8 - length * 0.5, width, -0.68, width);
    context.fill();
  }
}

function dot(context: CanvasRenderingContext2D, x: number, y: number, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 7);
  context.fill();
}
