// The session of this tab, saved so that a page that crashed or was reloaded gets its tank back at once.
//
// The token is in sessionStorage, not in localStorage. Its holder is the player: in localStorage every tab would come in
// with it and throw the others out, and it would stay on the disk after the tab. sessionStorage outlives a crash and a
// reload of the tab, and nothing else needs it. "Duplicate tab" copies it, so a tab that plays holds a lock by the same
// name, which a crash releases: a page that finds the lock held has a copy, and forgets it.

import { keep, recall } from "./kept";

interface Place {
  name: string;
  room: string;
}

/** Milliseconds that the page before this one may take to go away. */
const PATIENCE = 400;

const lockOf = ({ name, room }: Place) => `halftrack.session.${JSON.stringify([name, room])}`;

let held: { lock: string; release: () => void } | undefined;

/** Holds the lock until it is released. Resolves to whether it was got. */
function hold(lock: string, signal?: AbortSignal): Promise<boolean> {
  if (held?.lock === lock || !("locks" in navigator)) return Promise.resolve(true);
  letGo();
  return new Promise((resolve) => {
    const options = signal ? { signal } : {};
    const kept = navigator.locks.request(lock, options, () => {
      resolve(true);
      return new Promise<void>((release) => (held = { lock, release }));
    });
    kept.catch(() => resolve(false));
  });
}

function letGo(): void {
  held?.release();
  held = undefined;
}

function read(): [Place, string] | undefined {
  try {
    const [name, room, token] = JSON.parse(recall("session") || "[]") as string[];
    return name && room && token ? [{ name, room }, token] : undefined;
  } catch {
    return undefined;
  }
}

/** The player is in: the next page of this tab comes back with `token`. */
export function saveSession(place: Place, token: string | undefined): void {
  if (!token) return;
  keep("session", JSON.stringify([place.name, place.room, token]));
  void hold(lockOf(place));
}

/** The token to come back with as this player in this room, if this tab was there. */
export function savedSession(place: Place): string | undefined {
  const [saved, token] = read() ?? [];
  return saved?.name === place.name && saved.room === place.room ? token : undefined;
}

/** The session is over. */
export function forgetSession(): void {
  keep("session", "");
  letGo();
}

/** Once, before anybody comes in: a session that another tab plays is that tab's, and the one here is a copy. */
export async function claimSession(): Promise<void> {
  const [saved] = read() ?? [];
  if (saved && !(await hold(lockOf(saved), AbortSignal.timeout(PATIENCE)))) forgetSession();
}
