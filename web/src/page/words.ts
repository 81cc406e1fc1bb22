// The client's reasons for a failed login, in a player's words, each with the field or button that helps.

export type Help = "name" | "room" | "token" | "reload" | "again" | "here";

export interface Problem {
  text: string;
  help: Help;
}

/** In order: the first pattern that is found in the client's words counts. */
const KNOWN: readonly [RegExp, string, Help][] = [
  [/name is taken/, "Another player in this room has this name. Choose another.", "name"],
  [/room name has/, "A room name has 1 to 32 of these characters: a to z, A to Z, 0 to 9, - and _.", "room"],
  [/name is empty|more than 24|cannot be shown/, "This name cannot be used. A name has 1 to 24 visible characters.", "name"],
  [/server is full/, "The room is full. Try again in a moment, or choose another room.", "again"],
  [/needs credentials/, "This server asks for a token. Enter yours.", "token"],
  [/credentials are not valid/, "The server refused this token. It may have expired, or be for another name or room.", "token"],
  [/speaks version|other rules|different builds/, "The server was updated after this page was loaded.", "reload"],
  [/no such room/, "This room does not exist, and the server opens no more rooms. Choose another.", "room"],
  [/came in from somewhere else/, "You joined with this name from another tab or device.", "again"],
  [/removed by an operator/, "An operator of this server removed you.", "again"],
  [/does not let you in/, "The server does not let you in. Ask its operator why.", "name"],
  [/shutting down/, "The server is shutting down. Try again in a moment.", "again"],
  [/sent too much/, "The server closed the connection: this page sent too much.", "again"],
  [/has broken down/, "The game crashed. Reload the page, and please report it if it happens again.", "reload"],
];

/** A player's version of the client's words. */
export function explain(words: string): Problem {
  const bare = words.replace(/^(failed|Error): /, "");
  for (const [pattern, text, help] of KNOWN) if (pattern.test(bare)) return { text, help };
  return { text: `${bare.charAt(0).toUpperCase()}${bare.slice(1)}.`, help: "again" };
}

/** After a reload whose goodbye was lost, the server keeps the old session for a while. */
export const STILL_IN: Problem = {
  text: "The server still has your session from before the reload. Trying again by itself, for half a minute at most.",
  help: "again",
};

/** The name is taken by the same person. */
export const ELSEWHERE: Problem = {
  text: "That is you: you already play in this room with this name, in another tab of this browser.",
  help: "here",
};

export const TAKEN_OVER: Problem = { text: "You now play in another tab of this browser.", help: "again" };

export function isNameTaken(problem: Problem | undefined): boolean {
  return problem?.text === KNOWN[0]?.[1];
}

/** "3 s", and never below zero. */
export function seconds(ms: number): string {
  return `${Math.max(0, Math.ceil(ms / 1_000))} s`;
}

/** "1:02", or "1:02:03". */
export function clock(ms: number): string {
  const all = Math.max(0, Math.floor(ms / 1_000));
  const two = (number: number) => String(number).padStart(2, "0");
  const [hours, minutes, seconds] = [Math.floor(all / 3_600), Math.floor(all / 60) % 60, all % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}
