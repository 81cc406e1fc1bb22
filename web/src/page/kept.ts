// Settings that the browser stores for a player. The page also works in a browser that stores nothing.

type Key = "name" | "room" | "theme" | "tour" | "sound" | "token" | "lately" | "session" | "tab-name";

/** Forgotten with the tab: tokens are secrets, and the session and the name of a tab are no other tab's. */
const OF_THE_TAB: readonly Key[] = ["token", "lately", "session", "tab-name"];
const store = (key: Key) => (OF_THE_TAB.includes(key) ? sessionStorage : localStorage);

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
