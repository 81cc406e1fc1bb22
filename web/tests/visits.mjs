// A visit of the page, for tests: entering, looking at it, driving.

import { until } from "./rig.mjs";

export const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** What the page says of itself: `what` is a function that gets it. */
export const look = (page, what, ...rest) => page.evaluate(`(${what})(window.__halftrack, ...${JSON.stringify(rest)})`);
export const text = (page, selector) => page.locator(selector).textContent();
export const ownName = (page) => look(page, "(h) => h.game.fighters().find(({ own }) => own)?.name");

export async function plays(page) {
  await until("the page plays", () => look(page, "(h) => h?.state === 'logged_in' && h.picture?.playing"), page);
}

export async function enter(browser, server, wishes, prepare) {
  const page = await browser.visit(server, wishes, prepare);
  await plays(page);
  return page;
}

/** Drives to and fro for so long. */
export async function driveAround(page, ms) {
  await page.locator("#arena").focus();
  await page.keyboard.down("w");
  for (let turn = 0; turn * 400 < ms; turn++) {
    const key = turn % 3 ? "a" : "d";
    await page.keyboard.down(key);
    await wait(250);
    await page.keyboard.up(key);
    await wait(150);
  }
  await page.keyboard.up("w");
}

/** Makes the page that of a phone: 360 by 740, with touch. Use it before the page loads. */
export async function asPhone(browser, page) {
  const developer = await browser.context.newCDPSession(page);
  await developer.send("Emulation.setDeviceMetricsOverride", { width: 360, height: 740, deviceScaleFactor: 2, mobile: true });
  await developer.send("Emulation.setTouchEmulationEnabled", { enabled: true, maxTouchPoints: 2 });
  page.touch = (type, points) => developer.send("Input.dispatchTouchEvent", { type, touchPoints: points });
}

/** Playwright keeps every page visible to itself: the page is told what a hidden tab would be told. */
export function hide(page, hidden) {
  return page.evaluate((hidden) => {
    Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
    Object.defineProperty(document, "visibilityState", { value: hidden ? "hidden" : "visible", configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
  }, hidden);
}

/** Whether two elements overlap on the page. */
export function overlap(page, one, other) {
  return page.evaluate(
    ([one, other]) => {
      const [a, b] = [one, other].map((selector) => document.querySelector(selector).getBoundingClientRect());
      return a.width > 0 && b.width > 0 && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    },
    [one, other],
  );
}

/** Holds these keys and no others; `held` is a set that is kept from one call to the next. */
export async function holdKeys(page, held, wanted) {
  for (const key of [...held]) {
    if (wanted.includes(key)) continue;
    await page.keyboard.up(key);
    held.delete(key);
  }
  for (const key of wanted) {
    if (held.has(key)) continue;
    await page.keyboard.down(key);
    held.add(key);
  }
}

/** Drives to what `pick` finds in the picture until `enough`, or turns towards it if nothing is pressed to go
 *  ahead. Gives whether it got there. */
export async function driveTo(page, pick, enough, ms = 20_000, ahead = "w") {
  await page.locator("#arena").focus();
  const held = new Set();
  let there = false;
  for (const start = Date.now(); !there && Date.now() - start < ms; await wait(30)) {
    const way = await page.evaluate(`(() => {
      const { picture } = window.__halftrack;
      const target = (${pick})(picture);
      if (!target) return undefined;
      const left = Math.atan2(target.y - picture.drawn.y, target.x - picture.drawn.x) - picture.drawn.heading;
      return { left: Math.atan2(Math.sin(left), Math.cos(left)), enough: (${enough})(picture, target) };
    })()`);
    there = way?.enough === true;
    const keys = way && !there ? [way.left > 0.12 && "a", way.left < -0.12 && "d", Math.abs(way.left) < 0.7 && ahead] : [];
    await holdKeys(page, held, keys.filter(Boolean));
  }
  await holdKeys(page, held, []);
  return there;
}

/** The nearest other body of a kind: 1 rocket, 2 crate, 3 platform. */
export const nearest = (kind) => `(picture) => {
  const away = (body) => Math.hypot(body.x - picture.drawn.x, body.y - picture.drawn.y);
  const those = picture.bodies.slice(0, picture.bodyCount).filter((body) => body.kind === ${kind});
  return those.sort((one, other) => away(one) - away(other))[0];
}`;
