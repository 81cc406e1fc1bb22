// Why somebody is not in, and what helps. The client says why in words; this finds out which field or button helps.

export type Help = "name" | "room" | "token" | "reload" | "again";

export interface Problem {
  text: string;
  help: Help;
}

/** In order: the first that is found in the client's words is meant. */
const KNOWN: readonly [RegExp, string, Help][] = [
  [/name is taken/, "Somebody in this room has this name already. Choose another.", "name"],
  [/name is empty|more than 24|cannot be shown/, "This name cannot be used: 1 to 24 letters, digits or signs.", "name"],
  [/server is full/, "The room is full. Try again in a moment, or choose another room.", "again"],
  [/needs credentials/, "This server lets in whoever has a token. Enter yours.", "token"],
  [/credentials are not valid/, "The server does not take this token: it is for another name or room, or has expired.", "token"],
  [/speaks version|other rules|different builds/, "The server has been updated since this page was loaded.", "reload"],
  [/no such room/, "There is no such room, and the server opens no more. Choose another.", "room"],
  [/came in from somewhere else/, "You play in another tab or window with this name.", "again"],
  [/removed by an operator/, "An operator of the server has removed you.", "again"],
  [/does not let you in/, "The server does not let you in: ask its operator why.", "name"],
  [/shutting down/, "The server is shutting down. Try again in a moment.", "again"],
  [/sent too much/, "The server takes no more from this page: it sent too much.", "again"],
  [/has broken down/, "The game has broken down. Reloading helps; please report it if it happens again.", "reload"],
];

/** What the client's words mean to a player. */
export function explain(words: string): Problem {
  const bare = words.replace(/^(failed|Error): /, "");
  for (const [pattern, text, help] of KNOWN) if (pattern.test(bare)) return { text, help };
  return { text: `${bare.charAt(0).toUpperCase()}${bare.slice(1)}.`, help: "again" };
}

/** Whoever reloads before the goodbye got through is still in for a while, by the server's grace. */
export const STILL_IN: Problem = {
  text: "You are still in from a moment ago. Coming back by itself, within half a minute at most.",
  help: "again",
};

export function isNameTaken(problem: Problem | undefined): boolean {
  return problem?.text === KNOWN[0]?.[1];
}

/** "3 s", and never below zero. */
export function seconds(ms: number): string {
  return `${Math.max(0, Math.ceil(ms / 1_000))} s`;
}
