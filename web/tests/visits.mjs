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
