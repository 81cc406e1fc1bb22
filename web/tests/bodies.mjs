// Rockets, crates and platforms, in a real browser: on the network of this machine nothing is corrected.

import { Server, assert, until } from "./rig.mjs";
import { driveTo, enter, holdKeys, look, nearest, plays, text, wait } from "./visits.mjs";

/** A match of one's own, without walls in the way. */
async function field(browser, more, name = "Rik", theme = "dark") {
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=open:60", ...more.flatMap((set) => ["--set", set]));
  const page = await enter(browser, server, { name, theme });
  return { server, page };
}

/** A tank comes with an empty tube. */
const loadedTube = (page) => until("the tube is loaded", () => look(page, "(h) => h.picture.reloadLeft === 0"), page);
const told = (page) => look(page, "(h) => h.game.diagnostics()");

/** Corrections of the own tank and of the group that were no mere start. */
async function corrected(page) {
  const { causes, group } = await told(page);
  return JSON.stringify([causes, group.causes].map((each) => each.filter(([, count]) => count > 0)));
}

export async function bodies_a_rocket_is_drawn_in_the_frame_after_the_press({ browser }) {
  const { server, page } = await field(browser, ["rooms.crates=0", "rooms.platforms=0"]);
  await page.locator("#arena").focus();
  await loadedTube(page);
  // The press is one that no frame sees: down and up in one turn of the page.
  const found = await page.evaluate(
    () =>
      new Promise((resolve) => {
        const { picture } = window.__halftrack;
        requestAnimationFrame(() => {
          for (const type of ["keydown", "keyup"]) dispatchEvent(new KeyboardEvent(type, { code: "KeyR" }));
          // The page asked for its frame before this one was asked for.
          requestAnimationFrame(() => requestAnimationFrame(() => {
            const rockets = picture.bodies.slice(0, picture.bodyCount).filter((body) => body.kind === 1);
            resolve(rockets.map(({ own, predicted, lag }) => ({ own, predicted, lag })));
          }));
        });
      }),
  );
  assert(found.length === 1 && found[0].own && found[0].predicted && found[0].lag === 0, found);
  const loaded = () => page.evaluate(() => new DOMMatrix(getComputedStyle(document.querySelector("#rocket-bar")).transform).a);
  assert((await loaded()) < 0.5, "the tube is empty", await loaded());
  const ends = "(h) => h.events.filter(({ type, life, certainty }) => type === 'rocket' && life === 'ended' && certainty === 'confirmed').length";
  await until("it bursts and is confirmed", async () => (await look(page, ends)) === 1, page);
  const events = await look(page, "(h) => h.events.filter(({ type }) => type === 'rocket').map(({ life, certainty }) => `${life} ${certainty}`).sort().join()");
  // On a link this fast the server may confirm a birth or an end before the page's next frame predicts it.
  const once = ["born confirmed", "ended confirmed"].every((event) => events.split(",").filter((each) => each === event).length === 1);
  const others = events.replace(/(born|ended) confirmed,?/g, "").split(",").filter((event) => event);
  assert(once && new Set(others).size === others.length && others.every((event) => /^(born|ended) predicted$/.test(event)), events);
  const { rockets } = await told(page);
  assert(rockets.predicted <= 1 && rockets.confirmed === 1 && rockets.revoked === 0, rockets);
  const before = rockets.confirmed;
  assert((await look(page, "(h) => h.picture.bodyCount")) === 0, "nothing of it is left");
  await until("the tube is loaded", async () => (await loaded()) === 1, page);
  // A right click too, also while the left button is held.
  await page.mouse.move(400, 300);
  await page.mouse.down();
  await page.mouse.down({ button: "right" });
  await page.mouse.up({ button: "right" });
  await page.mouse.up();
  await until("a right click launches", async () => (await told(page)).rockets.confirmed === before + 1, page);
  await page.close();
  await server.stop();
}

export async function bodies_a_crate_gives_way_and_a_platform_carries_without_corrections({ browser }) {
  const { server, page } = await field(browser, ["rooms.crates=24", "rooms.platforms=2"]);
  await look(page, "(h) => (h.corrected = h.game.at(42))");
  const place = await page.evaluate(`(${nearest(2)})(window.__halftrack.picture)`);
  const there = await driveTo(page, nearest(2), "(picture, to) => Math.hypot(to.x - picture.drawn.x, to.y - picture.drawn.y) < 2.95");
  assert(there, "it comes to a crate", place);
  const held = new Set();
  const { id } = await page.evaluate(`(${nearest(2)})(window.__halftrack.picture)`);
  const before = await look(page, "(h, id) => ({ ...h.picture.body(id) })", id);
  await holdKeys(page, held, ["w"]);
  await wait(900);
  await holdKeys(page, held, []);
  const after = await look(page, "(h, id) => ({ ...h.picture.body(id) })", id);
  const way = Math.hypot(after.x - before.x, after.y - before.y);
  assert(way > 0.4 && after.predicted, "it is pushed", way, after);
  const aboard = await driveTo(page, nearest(3), "(picture, to) => Math.hypot(to.x - picture.drawn.x, to.y - picture.drawn.y) < 1.6", 40_000);
  assert(aboard, "it comes aboard");
  await until("it is carried", () => look(page, "(h) => h.picture.own.carrier >= 0"), page);
  const ride = () => look(page, "(h) => { const deck = h.picture.body(h.picture.own.carrier); return [h.picture.drawn.x - deck.x, h.picture.drawn.y - deck.y, deck.x + deck.y, deck.lag]; }");
  await until("it stands", async () => {
    const [one, other] = [await ride(), (await wait(120), await ride())];
    return Math.hypot(one[0] - other[0], one[1] - other[1]) < 0.002;
  }, page);
  const start = await ride();
  await wait(1_500);
  const end = await ride();
  assert(Math.hypot(end[0] - start[0], end[1] - start[1]) < 0.01, "it does not slide", start, end);
  assert(Math.abs(end[2] - start[2]) > 0.2 && end[3] === 0, "the platform moves, drawn at prediction time", start, end);
  const seen = await corrected(page);
  assert((await look(page, "(h) => h.game.at(42) - h.corrected")) === 0, "nothing was corrected", seen);
  const { group } = await told(page);
  assert(!group.causes.some(([cause, count]) => cause === "unexplained" && count > 0), seen);
  await page.close();
  await server.stop();
  return seen;
}

export async function bodies_of_tanks_play_are_there_and_the_inside_view_tells_of_them({ browser }) {
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=proving-ground", "--set", "rooms.crates=8");
  const page = await browser.visit(server, { name: "Ina" });
  await plays(page);
  const kinds = await until("crates and platforms are there", async () => {
    const counts = await look(page, "(h) => [2, 3].map((kind) => h.picture.bodies.slice(0, h.picture.bodyCount).filter((body) => body.kind === kind).length)");
    return counts[0] === 8 && counts[1] > 0 && counts;
  }, page);
  await page.locator("#open-inside").click();
  await until("the panel is there", () => page.locator("#group-rockets").isVisible(), page);
  await page.locator("#arena").focus();
  await loadedTube(page);
  await page.keyboard.press("r");
  await until("it counts the rocket", async () => (await text(page, "#group-rockets")).startsWith("1 predicted, 1 confirmed, 0 revoked"), page);
  const words = await text(page, "#inside .corrections.group");
  assert(/predicted with you/.test(words) && /rockets/.test(words), words);
  await page.close();
  await server.stop();
  return kinds.join(" crates, ") + " platforms";
}
