// What the browser remembers of a player. A browser that keeps nothing is played in all the same.

type Key = "name" | "room" | "theme" | "tour" | "token";

/** Tokens are secrets: they are forgotten with the tab. */
const store = (key: Key) => (key === "token" ? sessionStorage : localStorage);

export function recall(key: Key): string | undefined {
  try {
    return store(key).getItem(`halftrack.${key}`) ?? undefined;
  } catch {
    return undefined;
  }
}

export function keep(key: Key, value: string): void {
  try {
    store(key).setItem(`halftrack.${key}`, value);
  } catch {
    // Private windows may refuse.
  }
}
