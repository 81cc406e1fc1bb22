// What the browser remembers of a player. A browser that keeps nothing is played in all the same.

type Key = "name" | "room" | "theme" | "tour" | "token" | "lately";

/** Tokens are secrets, and where one was lately is this tab's affair: both are forgotten with it. */
const store = (key: Key) => (key === "token" || key === "lately" ? sessionStorage : localStorage);

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
