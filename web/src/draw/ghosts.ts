// The inside view's outlines: authoritative, predicted and visible pose of the own tank, and newest states of others.

import type { Picture, Place } from "../picture";
import type { Camera } from "./camera";
import type { Palette } from "./palette";

export type Ghost = "authoritative" | "predicted" | "visible" | "truth" | "path";
export type Ghosts = Record<Ghost, boolean>;

export function drawGhosts(
  context: CanvasRenderingContext2D,
  camera: Camera,
  palette: Palette,
  picture: Picture,
  wanted: Ghosts,
): void {
  const line = Math.max(1.5, 0.1 * camera.scale);
  if (wanted.truth) {
    for (let index = 0; index < picture.tankCount; index++) {
      const tank = picture.tanks[index];
      if (tank && !tank.own && tank.alive) outline(context, camera, tank.told, palette.ghost.truth, line, [4, 3]);
    }
  }
  if (!picture.playing || !picture.alive) return;
  if (wanted.path) drawPath(context, camera, palette, picture);
  if (wanted.authoritative) outline(context, camera, picture.authoritative, palette.ghost.authoritative, line * 1.4, []);
  if (wanted.visible) outline(context, camera, picture.visible, palette.ghost.visible, line, [2, 4]);
  if (wanted.predicted) outline(context, camera, picture.predicted, palette.ghost.predicted, line, [8, 4]);
}

function drawPath(context: CanvasRenderingContext2D, camera: Camera, palette: Palette, picture: Picture): void {
  context.strokeStyle = context.fillStyle = palette.ghost.path;
  context.lineWidth = Math.max(1.5, 0.1 * camera.scale);
  context.beginPath();
  for (let index = 0; index < picture.pathLength; index++) {
    const point = picture.path[index];
    if (point) context.lineTo(camera.toCanvasX(point.x), camera.toCanvasY(point.y));
  }
  context.stroke();
  context.beginPath();
  for (let index = 0; index < picture.pathLength; index++) {
    const point = picture.path[index];
    if (!point) continue;
    const [x, y] = [camera.toCanvasX(point.x), camera.toCanvasY(point.y)];
    context.moveTo(x, y);
    context.arc(x, y, Math.max(2, 0.16 * camera.scale), 0, 7);
  }
  context.fill();
}

function outline(
  context: CanvasRenderingContext2D,
  camera: Camera,
  place: Place,
  colour: string,
  width: number,
  dash: number[],
): void {
  if (!Number.isFinite(place.x) || !camera.sees(place.x, place.y, 3)) return;
  const { scale } = camera;
  context.save();
  context.translate(camera.toCanvasX(place.x), camera.toCanvasY(place.y));
  context.rotate(-place.heading);
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.setLineDash(dash);
  context.beginPath();
  context.roundRect(-1.6 * scale, -1.25 * scale, 3.2 * scale, 2.5 * scale, 0.3 * scale);
  // Which way it heads.
  context.moveTo(1.1 * scale, -0.35 * scale);
  context.lineTo(1.5 * scale, 0);
  context.lineTo(1.1 * scale, 0.35 * scale);
  context.stroke();
  context.restore();
}
