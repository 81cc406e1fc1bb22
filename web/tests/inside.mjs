// The inside view, in a real browser: its words, its plots, and what is seen of it at once.

import { assert, until } from "./rig.mjs";
import { enter } from "./visits.mjs";

async function opened(browser, server, wishes, prepare) {
  const page = await enter(browser, server, wishes, prepare);
  await page.locator("#open-inside").click();
  await until("the panel is there", () => page.locator("#inside").isVisible(), page);
  return page;
}

export async function inside_explains_its_words_on_hover_and_on_tap({ server, browser }) {
  const page = await opened(browser, server, { name: "Ute", room: "terms" }, (page) => page.setViewportSize({ width: 1280, height: 800 }));
  const visible = () =>
    page.evaluate(() =>
      [...document.querySelectorAll("#inside .bubble")]
        .filter((bubble) => bubble.checkVisibility({ visibilityProperty: true }))
        .map((bubble) => bubble.textContent)
        .join("|"),
    );
  for (const [word, meaning] of [["lead", /ahead of the server/], ["unanswered", /not answered yet/], ["margin", /late/], ["held", /stand still/]]) {
    const term = page.locator("#inside .term", { hasText: new RegExp(`^${word}$`) }).first();
    await term.scrollIntoViewIfNeeded();
    await term.hover();
    assert(meaning.test(await visible()), `${word} on hover:`, await visible());
    await page.mouse.move(200, 400);
    assert((await visible()) === "", "it stays:", await visible());
    await term.click();
    await page.mouse.move(200, 400);
    assert(meaning.test(await visible()), `${word} on tap:`, await visible());
    await page.locator("#arena").focus();
  }
  await page.close();
}

export async function inside_shows_corrections_above_the_fold({ server, browser }) {
  const page = await opened(browser, server, { name: "Val", room: "fold" }, (page) => page.setViewportSize({ width: 1280, height: 800 }));
  const box = await page.locator("#inside .corrections:not(.group) table").boundingBox();
  assert(box.y + box.height < 800, box);
  const below = await page.locator("#report").boundingBox();
  assert(below.y + below.height < 800, below);
  await page.close();
}

export async function inside_plots_have_units_and_a_time_axis({ server, browser }) {
  const page = await opened(browser, server, { name: "Wes", room: "axes" }, (page) =>
    page.addInitScript(() => {
      window.written = new Set();
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
        if (this.canvas.closest?.("#inside")) window.written.add(text);
        return fillText.call(this, text, ...rest);
      };
    }),
  );
  await until(
    "axes are drawn",
    () => page.evaluate(() => ["-60 s", "-30 s", "now", "0.1 m", "0 ms", "0 %", "0 kB/s"].every((label) => window.written.has(label))),
    page,
  ).catch(async (problem) => {
    throw new Error(`${problem.message} written: ${await page.evaluate(() => [...window.written].join(", "))}`);
  });
  await page.close();
}
