// The inside view's outlines: authoritative, predicted and visible pose of the own tank, newest states of others, and the
// bodies that are predicted with the own tank.

import { KIND } from "../client";
import type { Body, Picture, Place } from "../picture";
import type { Camera } from "./camera";
import type { Palette } from "./palette";

export type Ghost = "authoritative" | "predicted" | "visible" | "truth" | "path" | "group";
export type Ghosts = Record<Ghost, boolean>;

export function drawGhosts(
  context: CanvasRenderingContext2D,
  camera: Camera,
  palette: Palette,
  picture: Picture,
  wanted: Ghosts,
  ratio: number,
): void {
  const line = Math.max(1.5, 0.1 * camera.scale);
  if (wanted.truth) {
    for (let index = 0; index < picture.tankCount; index++) {
      const tank = picture.tanks[index];
      if (tank && !tank.own && tank.alive) outline(context, camera, tank.told, palette.ghost.truth, line, [4, 3]);
    }
  }
  if (wanted.group) drawGroup(context, camera, palette, picture, ratio);
  if (!picture.playing || !picture.alive) return;
  if (wanted.path) drawPath(context, camera, palette, picture);
  if (wanted.authoritative) outline(context, camera, picture.authoritative, palette.ghost.authoritative, line * 1.4, []);
  if (wanted.visible) outline(context, camera, picture.visible, palette.ghost.visible, line, [2, 4]);
  if (wanted.predicted) outline(context, camera, picture.predicted, palette.ghost.predicted, line, [8, 4]);
}

const NAMES: Record<number, string> = { [KIND.rocket]: "rocket", [KIND.crate]: "crate", [KIND.platform]: "platform" };

/** An outline around each member, a line from what is carried to what carries it, and how late a member is drawn. */
function drawGroup(
  context: CanvasRenderingContext2D,
  camera: Camera,
  palette: Palette,
  picture: Picture,
  ratio: number,
): void {
  const { own } = picture;
  const line = Math.max(1.5, 0.1 * camera.scale);
  context.strokeStyle = palette.ghost.group;
  context.lineWidth = line;
  context.setLineDash([2, 4]);
  if (own) link(context, camera, picture, own, own.carrier);
  for (let index = 0; index < picture.bodyCount; index++) {
    const body = picture.bodies[index];
    if (body?.predicted) link(context, camera, picture, body, body.carrier);
  }
  for (let index = 0; index < picture.bodyCount; index++) {
    const body = picture.bodies[index];
    if (!body?.predicted || !camera.sees(body.x, body.y, 4)) continue;
    context.setLineDash(body.leaving ? [3, 5] : []);
    around(context, camera, body);
  }
  context.setLineDash([]);
  context.font = `600 ${Math.round(11 * ratio)}px system-ui, sans-serif`;
  context.textAlign = "center";
  context.lineJoin = "round";
  context.lineWidth = 3 * ratio;
  context.strokeStyle = palette.labelEdge;
  context.fillStyle = palette.ghost.group;
  for (let index = 0; index < picture.bodyCount; index++) {
    const body = picture.bodies[index];
    if (!body?.predicted || !camera.sees(body.x, body.y, 4)) continue;
    const below = body.kind === KIND.platform ? 3.1 : 1.9;
    const [x, y] = [camera.toCanvasX(body.x), camera.toCanvasY(body.y - below) + 12 * ratio];
    const text = words(body);
    context.strokeText(text, x, y);
    context.fillText(text, x, y);
  }
}

/** "crate", and how late it is drawn while it joins or leaves. */
function words(body: Body): string {
  const name = NAMES[body.kind] ?? "";
  const late = Math.round(body.lag);
  if (body.leaving) return `${name}, leaves: ${late} ms late`;
  return late > 0 ? `${name}, joins: ${late} ms late` : name;
}

function link(context: CanvasRenderingContext2D, camera: Camera, picture: Picture, from: Place, carrier: number): void {
  const to = carrier < 0 ? undefined : picture.body(carrier);
  if (!to) return;
  context.beginPath();
  context.moveTo(camera.toCanvasX(from.x), camera.toCanvasY(from.y));
  context.lineTo(camera.toCanvasX(to.x), camera.toCanvasY(to.y));
  context.stroke();
}

function around(context: CanvasRenderingContext2D, camera: Camera, body: Body): void {
  const { scale } = camera;
  const [x, y] = [camera.toCanvasX(body.x), camera.toCanvasY(body.y)];
  context.beginPath();
  if (body.kind === KIND.platform) context.rect(x - 3.15 * scale, y - 3.15 * scale, 6.3 * scale, 6.3 * scale);
  else context.arc(x, y, (body.kind === KIND.rocket ? 1.15 : 1.7) * scale, 0, 7);
  context.stroke();
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
