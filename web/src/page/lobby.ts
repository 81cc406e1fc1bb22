// The way in: name, room, and a token where the server wants one.

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
  private readonly form = element("join", "form");
  private readonly name = element("name", "input");
  private readonly room = element("room-name", "input");
  private readonly token = element("token", "input");
  private readonly play = element("play", "button");
  private readonly problem = element("problem");
  private readonly wishes = new URLSearchParams(location.search);

  constructor(enter: (entry: Entry) => void) {
    this.name.value = this.wishes.get("name") ?? recall("name") ?? suggest();
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const entry = this.entry();
      keep("name", entry.name);
      keep("room", entry.room);
      if (entry.token) keep("token", entry.token);
      enter(entry);
    });
  }

  /** Whoever has been here before, or has a link with a name, is in at once. */
  ready(site: Site): Entry | undefined {
    this.room.value = this.wishes.get("room") ?? recall("room") ?? site.default_room;
    element("token-field", "label").hidden = site.auth !== "tokens";
    this.token.value = recall("token") ?? "";
    this.play.disabled = false;
    this.play.textContent = "Play";
    const known = this.wishes.has("name") || recall("name") !== undefined;
    if (known && (site.auth === "guests" || this.token.value)) return this.entry();
    this.show();
    return undefined;
  }

  show(problem?: Problem): void {
    this.lobby.hidden = false;
    this.play.textContent = problem?.help === "again" ? "Try again" : "Play";
    this.problem.hidden = !problem;
    this.problem.replaceChildren(...(problem ? [problem.text] : []));
    this.play.disabled = problem?.help === "reload";
    if (problem?.help === "reload") {
      const reload = make("button", "main", "Reload");
      reload.type = "button";
      reload.addEventListener("click", () => location.reload());
      this.problem.append(reload);
    }
    if (problem?.help === "token") element("token-field", "label").hidden = false;
    const fields = { name: this.name, room: this.room, token: this.token, reload: this.name, again: this.play };
    const field = fields[problem?.help ?? "name"];
    field.focus({ preventScroll: true });
    if (field instanceof HTMLInputElement) field.select();
  }

  hide(): void {
    this.lobby.hidden = true;
  }

  private entry(): Entry {
    return { name: this.name.value.trim(), room: this.room.value.trim(), token: this.token.value.trim() || undefined };
  }
}

function suggest(): string {
  const name = NAMES[Math.floor(Math.random() * NAMES.length)] ?? "Guest";
  return `${name} ${10 + Math.floor(Math.random() * 90)}`;
}

/** A link that leads into a room. */
export function linkTo(room: string): string {
  const link = new URL(location.href);
  link.search = "";
  link.hash = "";
  link.searchParams.set("room", room);
  return link.href;
}
