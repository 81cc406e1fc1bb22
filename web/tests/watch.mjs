// Recordings in the page, in a real browser: made by a real server, dropped, scrubbed and followed.

import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bots, Server, assert, until } from "./rig.mjs";

const MACHINES = 3;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
/** What the page says of what it shows: `what` is a function that gets it. */
const look = (page, what, ...rest) => page.evaluate(`(${what})(window.__halftrack.show, ...${JSON.stringify(rest)})`);
const now = (page) => look(page, "(show) => show.recorded.now");

let made;
/** The bytes of a match of some seconds, made once. */
async function recording() {
  if (made) return made;
  const folder = mkdtempSync(join(tmpdir(), "halftrack-recording-"));
  try {
    const sets = ["rooms.arena=proving-ground", `rooms.machines=${MACHINES}`].flatMap((set) => ["--set", set]);
    const server = await Server.start("127.0.0.1:0", "--record", folder, ...sets);
    const bots = Bots.start(server, 12, "--delay-ms", "40", "--jitter-ms", "10", "--loss", "0.03");
    await wait(9_000);
    await bots.stop();
    await server.stop("SIGINT");
    const file = readdirSync(folder).find((name) => name.endsWith(".htrec"));
    assert(file, "nothing was recorded:", server.said);
    made = readFileSync(join(folder, file));
    return made;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Drops a file onto the middle of the page, as a hand does. */
async function drop(page, name, bytes) {
  const zone = () => page.locator("#drop").isVisible();
  await page.evaluate(
    ([name, text]) => {
      const files = new DataTransfer();
      files.items.add(new File([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))], name));
      window.dropped = files;
      const over = new DragEvent("dragenter", { dataTransfer: files, bubbles: true, cancelable: true });
      document.elementFromPoint(innerWidth / 2, innerHeight / 2).dispatchEvent(over);
    },
    [name, Buffer.from(bytes).toString("base64")],
  );
  assert(await zone(), "the page does not say that the file can be dropped");
  await page.evaluate(() => {
    const event = new DragEvent("drop", { dataTransfer: window.dropped, bubbles: true, cancelable: true });
    document.elementFromPoint(innerWidth / 2, innerHeight / 2).dispatchEvent(event);
  });
  assert(!(await zone()), "the zone stays");
}

async function watched(page) {
  await until("the recording is shown", () => page.evaluate(() => window.__halftrack.show?.recorded.reading === false), page);
}

/** Errors that the page wrote into its console. */
function listen(page) {
  const said = [];
  page.on("console", (message) => message.type() === "error" && said.push(message.text()));
  return said;
}

export async function watch_a_dropped_recording_is_played_scrubbed_and_followed({ server, browser }) {
  const bytes = await recording();
  const page = await browser.visit(server, { name: "" });
  const said = listen(page);
  await until("the form is there", () => page.locator("#watch").isVisible(), page);
  await drop(page, "match.htrec", bytes);
  await watched(page);
  assert(!(await page.locator("#lobby").isVisible()), "the form is in the way");
  const [length, kills, reports] = await look(page, `(show) => [
    show.recorded.length, ...["kill", "report"].map((type) => show.recorded.marks.filter((mark) => mark.type === type).length)]`);
  assert(length > 5_000 && kills > 0 && reports > 0, length, kills, reports);
  await until("time goes on", async () => (await now(page)) > 100, page);

  // Keys: pause, by a second, the ends.
  await page.keyboard.press("Space");
  await page.keyboard.press("Home");
  await until("the beginning", async () => (await now(page)) === 0, page);
  await wait(150);
  assert((await now(page)) === 0, "it is not paused");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await until("two seconds on", async () => (await now(page)) === 2_000, page);
  await page.keyboard.press("ArrowLeft");
  await until("one back", async () => (await now(page)) === 1_000, page);
  await page.keyboard.press("End");
  await until("the end", async () => (await now(page)) === length, page);

  // The time line: a press, a drag, and what it says to whoever does not see it.
  const line = page.getByRole("slider");
  const box = await line.boundingBox();
  const at = (share) => [box.x + box.width * share, box.y + box.height / 2];
  await page.mouse.move(...at(0.25));
  await page.mouse.down();
  await page.mouse.move(...at(0.4), { steps: 5 });
  await page.mouse.move(...at(0.5), { steps: 5 });
  await page.mouse.up();
  await until("the middle", async () => Math.abs((await now(page)) - length / 2) < length / 50, page);
  assert(/^0:0\d of 0:/.test(await line.getAttribute("aria-valuetext")), await line.getAttribute("aria-valuetext"));

  // The same moment is the same picture, from wherever one comes.
  const tanks = () => look(page, "(show) => show.picture.tanks.slice(0, show.picture.tankCount).map(({ fighter, x, y, hp }) => [fighter, x, y, hp]).join()");
  const settle = (ms) => page.evaluate((ms) => new Promise((done) => {
    window.__halftrack.show.recorded.seek(ms);
    requestAnimationFrame(() => requestAnimationFrame(done));
  }), ms);
  await settle(4_321);
  const before = await tanks();
  await settle(length);
  assert((await tanks()) !== before, "nothing moves");
  await settle(4_321);
  assert((await tanks()) === before && before.length > 0, "another picture of the same moment");

  // Follow: in the list, on the arena, and back to all of it.
  const names = page.locator("#show .people button");
  assert((await names.count()) === 12 + MACHINES, await names.count());
  const marked = page.locator("#show .people .name.machine");
  assert((await marked.count()) === MACHINES, "names of machines:", await marked.allTextContents());
  const machine = names.filter({ has: page.locator(".machine") }).first();
  await machine.click();
  const subject = await until("the machine is followed", async () => {
    const said = await page.locator("#show .subject").textContent();
    return /a machine, driven by the server$/.test(said) && said;
  }, page);
  assert(subject.startsWith((await machine.locator(".name").textContent()).replace(" (machine)", "")), subject);
  await names.nth(3).click();
  const followed = await look(page, "(show) => show.followed");
  assert((await names.nth(3).getAttribute("aria-pressed")) === "true" || followed !== undefined, followed);
  const middle = await until("the camera is there", () => look(page, `(show) => {
    const tank = show.picture.find(show.followed);
    const [x, y] = show.scene.onPage(tank.x, tank.y);
    return x > 0 && x < innerWidth && y > 0 && y < innerHeight && [x, y];
  }`), page);
  assert(middle, "the followed tank is not to be seen");
  await page.keyboard.press("f");
  await until("the whole arena", () => look(page, `(show) => {
    const { camera } = show.scene;
    return [[-1, -1], [1, 1]].every(([x, y]) => camera.sees((x * show.recorded.about.arena.size[0]) / 2, (y * show.recorded.about.arena.size[1]) / 2, 0));
  }`), page);
  const [other, x, y] = await look(page, `(show) => {
    const tank = show.picture.tanks.slice(0, show.picture.tankCount).find((tank) => tank.fighter !== show.followed);
    return [tank.fighter, ...show.scene.onPage(tank.x, tank.y)];
  }`);
  await page.mouse.click(x, y);
  assert((await look(page, "(show) => show.followed")) === other, "a press on a tank does not follow it");

  // A mark says what it is.
  const report = await look(page, `(show) => {
    const mark = show.recorded.marks.find((mark) => mark.type === "report");
    show.follow(mark.fighter);
    return [mark.at_ms / show.recorded.length, mark.corrections[0][0].replace("_", " ")];
  }`);
  await wait(100);
  await page.mouse.move(...at(report[0]));
  await until("the mark is told", async () => (await page.locator("#show .bubble").textContent()).includes(report[1]), page);

  const speed = page.getByRole("combobox", { name: "Speed" });
  await speed.selectOption("8");
  await speed.focus();
  await page.keyboard.press("Escape");
  assert(await page.locator("#show").isVisible(), "a key of the list closed all");
  await line.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Space");
  await until("it ends by itself", async () => (await now(page)) === length && !(await look(page, "(show) => show.recorded.playing")), page);
  await page.getByRole("button", { name: "Close" }).click();
  assert((await page.locator("#lobby").isVisible()) && (await page.locator("#show").count()) === 0, "it does not close");
  assert(said.length === 0, said);
  await page.close();
  return `${bytes.length} bytes, ${(length / 1_000).toFixed(1)} s, ${kills} kills, ${reports} reports`;
}

export async function watch_what_is_no_recording_or_damaged_is_said({ server, browser }) {
  const bytes = await recording();
  const page = await browser.visit(server, { name: "" });
  const said = listen(page);
  await until("the form is there", () => page.locator("#watch").isVisible(), page);
  await drop(page, "holiday.jpg", Buffer.from("not a match"));
  await until("why not", async () => (await page.locator("#problem").textContent()) === "holiday.jpg: this is no recording.", page);
  await drop(page, "old.htrec", Buffer.concat([bytes.subarray(0, 8), Buffer.from([9]), bytes.subarray(9)]));
  await until("why not", async () => (await page.locator("#problem").textContent()).includes("version 9"), page);
  await page.setInputFiles("#watch-file", { name: "cut.htrec", mimeType: "", buffer: bytes.subarray(0, bytes.length - 3) });
  await watched(page);
  await until("what is wrong", async () => (await page.locator("#show .note").textContent()).includes("not whole: damaged after tick"), page);
  // What is shown stays when the next file is none.
  await drop(page, "holiday.jpg", Buffer.from("not a match"));
  await until("why not", async () => (await page.locator("#show .note").textContent()).includes("this is no recording"), page);
  assert(said.length === 0, said);
  await page.close();
}

export async function watch_whoever_plays_leaves_for_a_recording_and_comes_back({ server, browser }) {
  const bytes = await recording();
  const page = await browser.visit(server, { name: "Wim", room: "left" });
  await page.setViewportSize({ width: 360, height: 740 });
  await until("the page plays", () => page.evaluate(() => window.__halftrack?.picture?.playing), page);
  await drop(page, "holiday.jpg", Buffer.from("not a match"));
  await until("it is said", () => page.locator("#banner").isVisible(), page);
  assert((await page.evaluate(() => window.__halftrack.state)) === "logged_in", "a bad file ended the match");
  // It asks before the match is lost.
  await drop(page, "match.htrec", bytes);
  await until("it asks", () => page.locator("#ask").isVisible(), page);
  assert(/Leave this match/.test(await page.locator("#ask-text").textContent()), "it asks something else");
  await page.locator("#ask-no").click();
  await wait(300);
  assert((await page.evaluate(() => window.__halftrack.state)) === "logged_in", "it left all the same");
  await drop(page, "match.htrec", bytes);
  await until("it asks again", () => page.locator("#ask").isVisible(), page);
  await page.locator("#ask-yes").click();
  await watched(page);
  assert((await page.evaluate(() => window.__halftrack.state)) === "lobby", "still in the match");
  // On a phone nothing is cut off, and the picture follows somebody.
  const cut = await page.evaluate(() =>
    [...document.querySelectorAll("#show button, #show select, #show .line")]
      .filter((each) => each.checkVisibility())
      .map((each) => each.getBoundingClientRect())
      .filter((box) => box.left < 0 || box.right > innerWidth || box.bottom > innerHeight).length,
  );
  assert(cut === 0 && (await look(page, "(show) => show.followed !== undefined")), "cut off:", cut);
  const rows = await page.evaluate(() => new Set([...document.querySelectorAll("#show .tools .tool")].filter((each) => each.checkVisibility()).map((each) => each.offsetTop)).size);
  assert(rows === 1, "the buttons take", rows, "rows");
  await page.locator("#show .for-people").click();
  assert(await page.locator("#show .people").isVisible(), "no list");
  await page.keyboard.press("Escape");
  await page.locator("#play").click();
  await until("the page plays again", () => page.evaluate(() => window.__halftrack?.state === "logged_in" && window.__halftrack.picture.playing), page);
  await page.close();
}
