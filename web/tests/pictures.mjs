// `node tests/pictures.mjs`: the pictures in docs/pictures, of real matches. Look at them: no program can.

import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Bots, Browser, ROOT, Server, until } from "./rig.mjs";
import { driveTo, nearest } from "./visits.mjs";

const FOLDER = join(ROOT, "docs/pictures");
const BOTS = ["Otter", "Heron", "Lynx", "Bison"];
const wanted = process.argv.slice(2);
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Turns towards the nearest tank, drives and fires, as somebody would. */
async function fight(page, ms, enough = async () => false) {
  const held = new Set();
  const hold = async (key, down) => {
    if (held.has(key) === down) return;
    await page.keyboard[down ? "down" : "up"](key);
    held[down ? "add" : "delete"](key);
  };
  for (const start = Date.now(); Date.now() - start < ms; ) {
    const seen = await page.evaluate(() => {
      const { picture, onPage } = window.__halftrack;
      const { x, y, heading } = picture.drawn;
      const others = picture.tanks.slice(0, picture.tankCount).filter((tank) => !tank.own && tank.alive);
      const away = (tank) => Math.hypot(tank.x - x, tank.y - y);
      const [target] = others.sort((one, other) => away(one) - away(other));
      if (!target) return undefined;
      const left = Math.atan2(target.y - y, target.x - x) - heading;
      return { at: onPage(target.x, target.y), turn: Math.atan2(Math.sin(left), Math.cos(left)), away: away(target) };
    });
    if (seen) {
      await page.mouse.move(...seen.at);
      await hold("w", seen.away > 8);
      await hold("a", seen.turn > 0.25);
      await hold("d", seen.turn < -0.25);
      await page.mouse[seen.away < 30 ? "down" : "up"]();
    }
    if (await enough()) break;
    await wait(50);
  }
  for (const key of [...held]) await hold(key, false);
}

/** Stops the page in the frame in which there is something to be seen: `near` tanks, the own one among them, and shots. */
function catchMoment(page, near, moving) {
  return page.evaluate(
    ([near, moving]) => {
      const { picture } = window.__halftrack;
      const start = performance.now();
      const look = () => {
        const { x, y } = picture.drawn;
        const around = picture.tanks
          .slice(0, picture.tankCount)
          .filter((tank) => tank.alive && Math.abs(tank.x - x) < 24 && Math.abs(tank.y - y) < 12);
        const firing = around.filter((tank) => !tank.own && tank.shotAge < 80);
        const middle = Math.abs(x) < 30 && Math.abs(y) < 15;
        const unhurt = document.getElementById("hurt").style.opacity < 0.05;
        const busy = moving ? Math.abs(picture.own?.speed ?? 0) > 5 : picture.gunCooldown - picture.gunLeft < 90;
        // Whoever waits for long takes what there is.
        const wanted = near - Math.floor((performance.now() - start) / 25_000);
        if (!picture.alive || !middle || !unhurt || !busy || firing.length === 0 || around.length < wanted) {
          return requestAnimationFrame(look);
        }
        Object.defineProperty(document, "hidden", { value: true });
        document.dispatchEvent(new Event("visibilitychange"));
        window.caught = true;
      };
      requestAnimationFrame(look);
    },
    [near, moving],
  );
}

async function picture(name, { width, height, theme, phone = false, inside = false, lobby = false, near = 5 }) {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=proving-ground");
  const bots = BOTS.map((prefix, index) => Bots.start(server, 4, "--name-prefix", `${prefix} `, "--seed", String(index + 1)));
  const browser = await Browser.start({
    viewport: { width, height },
    deviceScaleFactor: phone ? 2 : 1,
    hasTouch: phone,
    isMobile: phone,
  });
  try {
    await wait(3_000);
    const page = await browser.visit(server, { name: lobby ? "" : "Ada", theme });
    if (lobby) await wait(500);
    else {
      await until("it plays", () => page.evaluate(() => window.__halftrack?.picture?.playing), page);
      await page.locator("#arena").focus();
      if (inside) {
        await page.keyboard.press("i");
        await page.locator("[data-plan=mobile]").click();
      }
      await fight(page, inside ? 40_000 : 9_000);
      await catchMoment(page, near, inside);
      await fight(page, 120_000, () => page.evaluate(() => window.caught));
    }
    await page.screenshot({ path: join(FOLDER, `${name}.jpg`), type: "jpeg", quality: 82 });
    console.log(name, browser.takeProblems());
  } finally {
    await browser.stop();
    for (const each of bots) await each.stop();
    await server.stop();
  }
}

/** A recorded match, just when whoever is followed destroys somebody; one of its corrections is pointed at. */
async function watched(name, { width, height, theme }) {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  const folder = mkdtempSync(join(tmpdir(), "halftrack-recording-"));
  const recording = await Server.start("127.0.0.1:0", "--record", folder, "--set", "rooms.arena=proving-ground");
  const bad = ["--delay-ms", "40", "--jitter-ms", "10", "--loss", "0.02"];
  const bots = BOTS.map((prefix, index) => Bots.start(recording, 4, "--name-prefix", `${prefix} `, "--seed", String(index + 1), ...bad));
  await wait(100_000);
  for (const each of bots) await each.stop();
  await recording.stop("SIGINT");
  const server = await Server.start();
  const browser = await Browser.start({ viewport: { width, height } });
  try {
    const page = await browser.visit(server, { name: "", theme });
    await until("the form is there", () => page.locator("#watch").isVisible(), page);
    const file = readdirSync(folder).find((file) => file.endsWith(".htrec"));
    await page.setInputFiles("#watch-file", join(folder, file));
    await until("it is shown", () => page.evaluate(() => window.__halftrack.show?.recorded.reading === false), page);
    const [kill, report] = await page.evaluate(() => {
      const { show } = window.__halftrack;
      const { marks, length } = show.recorded;
      const kills = marks.filter((mark) => mark.type === "kill");
      const of = ({ by }) => kills.filter((other) => other.by === by).length;
      const late = kills.filter((mark) => mark.at_ms > length * 0.55 && mark.at_ms < length * 0.8);
      const kill = late.sort((one, other) => of(other) - of(one))[0];
      const reports = marks.filter((mark) => mark.type === "report" && mark.fighter === kill.by);
      const away = (mark) => Math.abs(mark.at_ms - length * 0.4);
      const report = reports.sort((one, other) => away(one) - away(other))[0];
      show.follow(kill.by);
      show.recorded.seek(kill.at_ms - 2_500);
      return [kill.at_ms, report ? report.at_ms / length : 0.4];
    });
    const box = await page.getByRole("slider").boundingBox();
    await until("it dies", () => page.evaluate((at) => window.__halftrack.show.recorded.now > at + 120, kill), page);
    await page.keyboard.press("Space");
    await page.mouse.move(box.x + box.width * report, box.y + box.height / 2);
    await wait(400);
    await page.screenshot({ path: join(FOLDER, `${name}.jpg`), type: "jpeg", quality: 82 });
    console.log(name, browser.takeProblems());
  } finally {
    await browser.stop();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Stops the page in the frame in which rockets, crates and the platform are to be seen; whoever waits for long takes less. */
function catchRockets(page, group) {
  return page.evaluate((group) => {
    const { picture, onPage, events } = window.__halftrack;
    const [start, seen] = [performance.now(), new Map()];
    let told = events.length;
    let burst;
    const look = () => {
      const now = performance.now();
      const patience = (now - start) / 8_000;
      const inside = ([x, y]) => x > 60 && x < innerWidth - (group ? 850 : 60) && y > 90 && y < innerHeight - 90;
      const bodies = picture.bodies.slice(0, picture.bodyCount).filter((body) => inside(onPage(body.x, body.y)));
      for (const event of events.slice(told)) {
        if (event.type === "rocket" && event.life === "ended" && event.certainty !== "revoked" && inside(onPage(...event.at))) burst = now;
      }
      told = events.length;
      const rockets = bodies.filter((body) => body.kind === 1);
      for (const { id } of rockets) if (!seen.has(id)) seen.set(id, now);
      const flying = rockets.some(({ id }) => now - seen.get(id) > 260 - 20 * patience);
      const enough = bodies.filter(({ kind }) => kind === 2).length > 3 - patience && bodies.some(({ kind }) => kind === 3);
      const members = bodies.filter(({ predicted }) => predicted).length;
      const there = group ? members > 4 - patience && picture.own?.carrier >= 0 : now - burst > 50 && now - burst < 170 + 20 * patience;
      const late = !group && patience > 1.5 && (flying || there);
      if (!picture.alive || !enough || (!late && !(flying && there))) return requestAnimationFrame(look);
      Object.defineProperty(document, "hidden", { value: true });
      document.dispatchEvent(new Event("visibilitychange"));
      window.caught = true;
    };
    requestAnimationFrame(look);
  }, group);
}

/** Rockets between two players among machines, crates and platforms. */
async function rockets(name, { width, height, group = false, theme = "dark" }) {
  if (wanted.length > 0 && !wanted.includes(name)) return;
  const sets = ["rooms.arena=proving-ground", `rooms.machines=${group ? 4 : 0}`, "rooms.crates=28"].flatMap((set) => ["--set", set]);
  const server = await Server.start("127.0.0.1:0", ...sets);
  const browser = await Browser.start({ viewport: { width, height } });
  const plays = (page) => until("it plays", () => page.evaluate(() => window.__halftrack?.picture?.playing), page);
  try {
    const other = await browser.visit(server, { name: "Bo", theme });
    await other.setViewportSize({ width: 360, height: 240 });
    await plays(other);
    const page = await browser.visit(server, { name: "Ada", theme });
    await plays(page);
    if (group) await page.locator("#open-inside").click();
    const away = (reach) => `(picture, to) => Math.hypot(to.x - picture.drawn.x, to.y - picture.drawn.y) < ${reach}`;
    const deck = await until("there is a platform", () => page.evaluate(`(${nearest(3)})(window.__halftrack.picture)?.id`), page);
    const same = `(picture) => picture.body(${deck})`;
    await Promise.all([driveTo(page, nearest(3), away(1.2), 45_000), driveTo(other, same, away(12), 45_000)]);
    await catchRockets(page, group);
    const caught = () => page.evaluate(() => window.caught);
    for (let round = 0; round < 60 && !(await caught()); round++) {
      const far = (body) => `Math.hypot(${body}.x - picture.drawn.x, ${body}.y - picture.drawn.y)`;
      const target = `(picture) => picture.bodies.slice(0, picture.bodyCount).filter((body) => body.kind === 2 && ${far("body")} > 6).sort((one, other) => ${far("one")} - ${far("other")})[0]`;
      if (!(await page.evaluate(() => window.__halftrack.picture.own?.carrier >= 0))) {
        await driveTo(page, nearest(3), away(1.2), 8_000);
      }
      // Turns towards a crate some metres away, and launches.
      const faces = "(picture, to) => Math.abs(Math.atan2(Math.sin(Math.atan2(to.y - picture.drawn.y, to.x - picture.drawn.x) - picture.drawn.heading), Math.cos(Math.atan2(to.y - picture.drawn.y, to.x - picture.drawn.x) - picture.drawn.heading))) < 0.1";
      for (const each of [page, other]) {
        await driveTo(each, target, faces, 1_500, false);
        await each.keyboard.press("r");
      }
      await wait(300);
    }
    await page.screenshot({ path: join(FOLDER, `${name}.jpg`), type: "jpeg", quality: group ? 52 : 66 });
    console.log(name, (await caught()) === true, browser.takeProblems());
  } finally {
    await browser.stop();
    await server.stop();
  }
}

mkdirSync(FOLDER, { recursive: true });
await picture("arena", { width: 1440, height: 810, theme: "dark", near: 6 });
await picture("inside", { width: 1600, height: 1000, theme: "dark", inside: true, near: 4 });
await picture("phone", { width: 360, height: 740, theme: "dark", phone: true, near: 4 });
await picture("light", { width: 1280, height: 800, theme: "light", near: 4 });
await picture("dark", { width: 1280, height: 800, theme: "dark", near: 5 });
await watched("watch", { width: 1440, height: 810, theme: "dark" });
await rockets("rockets", { width: 1440, height: 810 });
await rockets("group", { width: 1600, height: 1000, group: true });
