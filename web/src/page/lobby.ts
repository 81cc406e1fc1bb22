// The form to join: name, room, and a token where the server wants one.

import type { Site } from "../client";
import { element, make } from "./dom";
import { keep, recall } from "./kept";
import type { Problem } from "./words";

export interface Entry {
  name: string;
  room: string;
  token: string | undefined;
}

const NAMES = ["Falcon", "Badger", "Otter", "Heron", "Lynx", "Marten", "Raven", "Viper", "Bison", "Kestrel"];

export class Lobby {
  private readonly lobby = element("lobby");
  private readonly stage = element("stage", "main");
  private readonly form = element("join", "form");
  private readonly name = element("name", "input");
  private readonly room = element("room-name", "input");
  private readonly token = element("token", "input");
  private readonly play = element("play", "button");
  private readonly problem = element("problem", "p");
  private readonly wishes = new URLSearchParams(location.search);

  /** `takeOver` is called for a player that plays in another tab and wants to play in this one. */
  constructor(
    enter: (entry: Entry) => void,
    private readonly takeOver: (entry: Entry) => void,
  ) {
    // A name of this tab is kept over a reload: the address has none after the entry, so that it can be shared.
    this.name.value = this.wishes.get("name") ?? recall("tab-name") ?? recall("name") ?? suggest();
    this.stage.inert = true;
    this.token.addEventListener("input", () => this.readToken());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const entry = this.entry();
      keep("name", entry.name);
      keep("room", entry.room);
      if (entry.token) keep("token", entry.token);
      enter(entry);
    });
  }

  /** A player that was here before, or has a link with a name, is in at once. */
  ready(site: Site): Entry | undefined {
    this.room.value = this.wishes.get("room") ?? recall("room") ?? site.default_room;
    element("token-field", "label").hidden = site.auth !== "tokens";
    this.token.value = recall("token") ?? "";
    if (site.auth === "tokens") this.readToken();
    this.play.disabled = false;
    this.play.textContent = "Play";
    const known = this.wishes.has("name") || recall("tab-name") !== undefined || recall("name") !== undefined;
    if ((site.auth === "guests" && known) || (site.auth === "tokens" && this.token.value)) return this.entry();
    this.show();
    return undefined;
  }

  show(problem?: Problem): void {
    this.lobby.hidden = false;
    // Behind the form nothing can be reached by Tab.
    this.stage.inert = true;
    this.play.textContent = problem?.help === "again" ? "Try again" : "Play";
    this.problem.hidden = !problem;
    this.problem.replaceChildren(...(problem ? [problem.text] : []));
    this.play.disabled = problem?.help === "reload";
    const help = problem?.help;
    if (help === "reload") this.offer("Reload", () => location.reload());
    if (help === "here") this.offer("Play here instead", () => this.takeOver(this.entry()));
    if (help === "token") element("token-field", "label").hidden = false;
    const first = element("token-field", "label").hidden || this.token.value ? this.name : this.token;
    const fields = { name: first, room: this.room, token: this.token, reload: this.name, again: this.play, here: this.name };
    const named = fields[help ?? "name"];
    const field = named.checkVisibility() ? named : this.play;
    field.focus({ preventScroll: true });
    if (field instanceof HTMLInputElement) field.select();
  }

  hide(): void {
    this.lobby.hidden = true;
    this.stage.inert = false;
  }

  private offer(text: string, press: () => void): void {
    const button = make("button", "main", text);
    button.type = "button";
    button.addEventListener("click", press);
    this.problem.append(button);
  }

  /** A token is good for one name, and perhaps for one room: neither has to be typed again. */
  private readToken(): void {
    const { sub, room } = claimsOf(this.token.value.trim());
    element("name-field", "label").hidden = sub !== undefined;
    if (sub !== undefined) this.name.value = sub;
    if (room !== undefined) this.room.value = room;
    const said = element("token-name", "small");
    said.hidden = sub === undefined;
    said.textContent = sub === undefined ? "" : `You will play as ${sub}.`;
  }

  private entry(): Entry {
    const token = element("token-field", "label").hidden ? undefined : this.token.value.trim() || undefined;
    return { name: this.name.value.trim(), room: this.room.value.trim(), token };
  }
}

/** Name and room of a signed token, as far as it can be read; whether it is good is for the server to say. */
function claimsOf(token: string): { sub?: string; room?: string } {
  try {
    const middle = (token.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(middle), (letter) => letter.charCodeAt(0));
    const claims = JSON.parse(new TextDecoder().decode(bytes)) as Record<string, unknown>;
    const text = (key: string) => (typeof claims[key] === "string" ? { [key]: claims[key] } : {});
    return { ...text("sub"), ...text("room") };
  } catch {
    return {};
  }
}

function suggest(): string {
  const name = NAMES[Math.floor(Math.random() * NAMES.length)] ?? "Guest";
  return `${name} ${10 + Math.floor(Math.random() * 90)}`;
}

/** A link to a room. */
export function linkTo(room: string): string {
  const link = new URL(location.href);
  link.search = "";
  link.hash = "";
  link.searchParams.set("room", room);
  return link.href;
}
