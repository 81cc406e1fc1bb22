// Whether the player asked the system for less motion. Read when it matters: the setting can change while the page is open.

const query = matchMedia("(prefers-reduced-motion: reduce)");

export const wantsLessMotion = (): boolean => query.matches;
