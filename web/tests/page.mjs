// The page in a real browser, against the real server: what a player sees and does.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Bots, Server, assert, program, until } from "./rig.mjs";
import { asPhone, driveAround, enter, hide, look, plays, text, wait } from "./visits.mjs";

const causes = async (page) => Object.fromEntries(await look(page, "(h) => h.game.diagnostics().causes"));

export async function page_is_played_within_two_seconds_and_asks_nobody_else({ server, browser }) {
  const asked = new Set();
  const page = await enter(browser, server, { name: "Ada", room: "quick" }, async (page) => {
    page.on("request", (request) => asked.add(new URL(request.url()).origin));
    await page.addInitScript(() => {
      window.shifts = 0;
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) window.shifts += entry.value;
      }).observe({ type: "layout-shift", buffered: true });
    });
  });
  const first = await look(page, "(h) => h.firstFrame");
  assert(first < 2_000, "first playable frame after", first, "ms");
  assert([...asked].every((origin) => origin === new URL(server.url).origin || origin === "null"), [...asked]);
  await driveAround(page, 1_500);
  const shifts = await page.evaluate(() => window.shifts);
  assert(shifts < 0.01, "the layout shifted by", shifts);
  await page.close();
}

export async function page_is_small_to_load({ server, browser }) {
  const loaded = [];
  const page = await enter(browser, server, { name: "Abe", room: "small" }, (page) =>
    page.on("response", (response) => loaded.push(response.body().then((body) => [response.url(), gzipSync(body, { level: 9 }).length]))),
  );
  await page.keyboard.press("i");
  await until("the panel is there", () => page.locator("#inside").isVisible(), page);
  const files = await Promise.all(loaded);
  await page.close();
  const sum = (wasm) => files.filter(([url]) => url.endsWith(".wasm") === wasm).reduce((total, [, size]) => total + size, 0);
  const [code, wasm] = [sum(false), sum(true)];
  assert(code < 120_000 && wasm < 240_000 && wasm > 0, code, wasm);
  return `${code} bytes of page and ${wasm} of wasm, compressed`;
}

export async function page_lets_in_by_its_form_and_remembers({ server, browser }) {
  const page = await browser.visit(server, { name: "", room: "" });
  await until("the form is ready", () => page.locator("#play").isEnabled(), page);
  assert((await page.locator("#token-field").isVisible()) === false, "a token is asked for");
  await page.locator("#name").fill("Grace");
  await page.locator("#room-name").fill("duel");
  await page.locator("#room-name").press("Enter");
  await plays(page);
  assert(page.url().endsWith("/?room=duel"), page.url());
  const kept = await page.evaluate(() => [localStorage["halftrack.name"], localStorage["halftrack.room"]]);
  assert(kept.join() === "Grace,duel", kept);
  await page.locator("#leave").click();
  await until("the form is back", () => page.locator("#join").isVisible(), page);
  await page.close();
}

export async function page_that_is_reloaded_is_in_again_at_once({ server, browser }) {
  const page = await enter(browser, server, { name: "Hedy", room: "reload" });
  for (let time = 0; time < 3; time++) {
    await page.reload();
    await plays(page);
  }
  const first = await look(page, "(h) => h.firstFrame");
  assert(first < 2_000, "first playable frame after", first, "ms");
  await page.close();
}

/** Puts a saved session into a tab before its page runs, as a restored or a duplicated tab has it. */
const restored = (session) => (page) =>
  page.addInitScript((session) => sessionStorage.setItem("halftrack.session", session), session);

export async function page_that_crashed_gets_its_tank_back_by_its_saved_token({ server, browser }) {
  const place = { name: "Ida", room: "crash" };
  const page = await enter(browser, server, place);
  const [own, session] = await look(page, "(h) => [h.game.at(3), sessionStorage['halftrack.session']]");
  assert(JSON.parse(session)[2].length === 32, "the token is saved");
  assert((await page.evaluate(() => localStorage["halftrack.session"])) === undefined, "not for other tabs");
  // A crash says no goodbye.
  await look(page, "(h) => { h.game.logout = () => {}; }");
  await page.close();
  const back = await enter(browser, server, place, restored(session));
  const [again, restarts] = await look(
    back,
    "(h) => [h.game.at(3), h.events.filter(({ type }) => type === 'restarted').map(({ why }) => why)]",
  );
  assert(again === own && restarts.join() === "reclaimed", "came back as", again, "not", own, restarts);
  await back.locator("#leave").click();
  await until("the lobby is there", () => back.locator("#join").isVisible(), back);
  assert((await back.evaluate(() => sessionStorage["halftrack.session"])) === "", "a session that is over is forgotten");
  await back.close();
}

export async function page_in_a_duplicated_tab_does_not_throw_the_first_one_out({ server, browser }) {
  const place = { name: "Joan", room: "twice" };
  const page = await enter(browser, server, place);
  const session = await look(page, "() => sessionStorage['halftrack.session']");
  const copy = await browser.visit(server, place, restored(session));
  await until("the copy is kept out", () => copy.locator("#join").isVisible(), copy);
  assert((await look(page, "(h) => h.state")) === "logged_in", "the first one plays on");
  await copy.close();
  await page.close();
}

/** Milliseconds and frames from a key to the first frame in which the own tank has turned. */
async function answer(page, key) {
  await page.evaluate(() => {
    const [hooks, trace] = [window.__halftrack, { pressed: NaN, frames: 0, before: NaN, moved: undefined }];
    window.trace = trace;
    addEventListener("keydown", () => (trace.pressed ||= performance.now()), { capture: true, once: true });
    const frame = () => {
      const { heading } = hooks.picture.drawn;
      if (Number.isNaN(trace.pressed)) trace.before = heading;
      else {
        trace.frames += 1;
        if (heading !== trace.before) {
          trace.moved = { ms: performance.now() - trace.pressed, frames: trace.frames };
          return;
        }
      }
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  await wait(200);
  await page.keyboard.down(key);
  const moved = await until("the tank turns", () => page.evaluate(() => window.trace.moved), page);
  await page.keyboard.up(key);
  await wait(600);
  return moved;
}

export async function page_answers_in_the_next_frame_200_ms_away({ server, browser }) {
  const page = await enter(browser, server, { name: "Bea", room: "far" });
  await look(page, "(h) => h.game.setLink('both', { delay_ms: 100 })");
  await until("it is far", () => look(page, "(h) => h.game.diagnostics().sample.rtt_ms > 190"), page);
  await wait(1_000);
  await page.locator("#arena").focus();
  const predicted = await answer(page, "a");
  // What is pressed after a frame began is in the one after it.
  assert(predicted.frames <= 2 && predicted.ms < 60, "with prediction:", predicted);
  await look(page, "(h) => h.game.setSwitch('prediction', false)");
  await wait(500);
  const waited = await answer(page, "a");
  assert(waited.ms > 190, "without prediction:", waited);
  await page.close();
  return `${predicted.ms.toFixed(0)} ms, ${predicted.frames} frame(s); without prediction ${waited.ms.toFixed(0)} ms`;
}

export async function page_shoots_a_bot_and_sees_its_hit_points_fall({ browser }) {
  // A small ground: everybody is in the picture.
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=open:1");
  const bots = Bots.start(server, 1, "--play", "roam");
  try {
    const page = await enter(browser, server, { name: "Cid" });
    await until("the bot is here", () => look(page, "(h) => h.picture.tankCount === 2"), page);
    const target = "(h) => h.picture.tanks.slice(0, h.picture.tankCount).find((tank) => !tank.own)";
    assert((await look(page, target)).hp === 100, "it was hit before");
    // In circles: no pillar is in between for long.
    await page.keyboard.down("w");
    await page.keyboard.down("a");
    await until(
      "its hit points fall",
      async () => {
        const bot = await look(page, target);
        const [x, y] = await look(page, "(h, x, y) => h.onPage(x, y)", bot.x, bot.y);
        await page.mouse.move(x, y);
        await page.mouse.down();
        await page.mouse.up();
        return bot.hp < 100;
      },
      page,
    );
    const hits = await look(page, "(h) => h.events.filter((event) => event.type === 'damage' && event.hp < 100).length");
    assert(hits > 0, "nobody told of the damage");
    await page.close();
  } finally {
    await bots.stop();
    await server.stop();
  }
}

export async function page_is_never_corrected_on_a_clean_link({ server, browser }) {
  const page = await enter(browser, server, { name: "Dot", room: "alone" });
  const told = () => look(page, "(h) => h.game.diagnostics()");
  // A machine that is busy with something else lets input come late, and the client says so: it is tried again then, but
  // for nothing else.
  for (let time = 1; time <= 4; time++) {
    const before = await told();
    await driveAround(page, 5_000);
    const after = await told();
    const { late_input, ...others } = Object.fromEntries(after.causes);
    assert(Object.values(others).every((count) => count === 0), after.causes, after.recent);
    const ticks = after.own_ticks.as_sent - before.own_ticks.as_sent;
    if (after.sample.corrections === before.sample.corrections && ticks > 60) {
      await page.close();
      return `${ticks} ticks, no correction (${time === 1 ? "the first time" : `${time} times; ${late_input} late before`})`;
    }
  }
  assert(false, "corrected each time:", await told());
}

export async function page_explains_every_correction_on_a_mobile_network({ browser }) {
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=proving-ground");
  const bots = Bots.start(server, 5);
  try {
    const page = await enter(browser, server, { name: "Eve" });
    await page.locator("#arena").focus();
    await page.keyboard.press("i");
    await page.locator("[data-plan=mobile]").click();
    assert((await page.locator("#link-delay_ms").inputValue()) === "60", "the slider does not follow");
    await driveAround(page, 10_000);
    const told = await look(page, "(h) => h.game.diagnostics()");
    assert(told.sample.jitter_ms > 10, "the link is not bad:", told.sample);
    assert((await text(page, '[data-fact="unexplained"]')) === "0", await causes(page), told.recent);
    assert((await page.locator("#inside canvas").count()) === 5, "plots are missing");
    await page.close();
    return `${told.sample.corrections} corrections: ${JSON.stringify(Object.fromEntries(told.causes.filter(([, count]) => count)))}`;
  } finally {
    await bots.stop();
    await server.stop();
  }
}

export async function page_says_that_it_plays_by_websocket({ server, browser }) {
  const page = await enter(browser, server, { name: "Fay", room: "socket" }, (page) =>
    page.addInitScript(() => delete window.WebTransport),
  );
  assert((await text(page, "#badge-kind")) === "WebSocket", await text(page, "#badge-kind"));
  assert(/has no WebTransport/.test(await text(page, "#badge-why")), await text(page, "#badge-why"));
  await driveAround(page, 1_000);
  assert((await causes(page)).unexplained === 0, await causes(page));
  await page.close();
}

export async function page_finds_a_server_again_by_itself({ browser }) {
  let server = await Server.start();
  try {
    const { address } = server;
    const page = await enter(browser, server, { name: "Gus" });
    await server.stop();
    await until("it says so", () => page.locator("#banner:not([hidden])", { hasText: "Reconnecting" }).isVisible(), page);
    server = await Server.start(address);
    const start = Date.now();
    await plays(page);
    await until("the banner is gone", () => page.locator("#banner").isHidden(), page);
    const took = Date.now() - start;
    const frames = await look(page, "(h) => h.frames");
    await until("it draws", async () => (await look(page, "(h) => h.frames")) > frames + 10, page);
    await driveAround(page, 500);
    await page.close();
    return `back ${took} ms after the server was`;
  } finally {
    await server.stop();
  }
}

export async function page_tells_of_a_server_that_closes({ browser }) {
  const server = await Server.start("127.0.0.1:0", "--set", "drain.seconds=4");
  try {
    const page = await enter(browser, server, { name: "Hal" });
    server.child.kill("SIGTERM");
    await until("it counts down", async () => /closes in [1-4] s/.test(await text(page, "#banner")), page);
    await page.close();
  } finally {
    await server.stop();
  }
}

export async function page_that_is_hidden_for_ten_seconds_costs_nothing_and_is_back_at_once({ server, browser }) {
  const [page, other] = [
    await enter(browser, server, { name: "Ida", room: "hidden" }),
    await enter(browser, server, { name: "Jon", room: "hidden" }),
  ];
  await page.bringToFront();
  await page.locator("#arena").focus();
  await page.keyboard.down("w");
  await wait(300);
  const developer = await browser.context.newCDPSession(page);
  const heap = async () => {
    await developer.send("HeapProfiler.collectGarbage");
    return (await developer.send("Runtime.getHeapUsage")).usedSize;
  };
  await other.bringToFront();
  await hide(page, true);
  await wait(100);
  const before = await look(page, "(h) => [h.frames, h.memory, h.game.at(28)]");
  const heapBefore = await heap();
  await driveAround(other, 10_000);
  const after = await look(page, "(h) => [h.frames, h.memory]");
  const heapAfter = await heap();
  assert(after[0] === before[0], "frames while hidden:", after[0] - before[0]);
  assert(after[1] === before[1], "wasm grew from", before[1], "to", after[1]);
  assert(heapAfter < heapBefore + 500_000, "the heap grew from", heapBefore, "to", heapAfter);
  await page.bringToFront();
  const start = Date.now();
  await hide(page, false);
  const fresh = "(h, before) => h.frames > before + 2 && h.state === 'logged_in' && h.picture.tankCount === 2 && Math.max(...[...h.game.tanks()].map((row) => h.game.at(row + 14))) < 300";
  await until("it is up to date", () => look(page, fresh, before[0]), page);
  const took = Date.now() - start;
  assert(took < 2_000, "took", took, "ms");
  assert((await look(page, "(h) => h.game.at(28)")) === 0, "the tank drives on");
  await page.keyboard.up("w");
  await page.close();
  await other.close();
  return `back in ${took} ms; heap ${heapBefore} to ${heapAfter}, wasm ${after[1]} bytes`;
}

export async function page_sees_another_page({ server, browser }) {
  const [one, other] = [
    await enter(browser, server, { name: "Kim", room: "two" }),
    await enter(browser, server, { name: "Lea", room: "two" }),
  ];
  const seen = "(h) => { const tank = h.picture.tanks.slice(0, h.picture.tankCount).find((tank) => !tank.own); return tank && [tank.x, tank.y, tank.heading]; }";
  const [x, y, heading] = await until("it sees the first", () => look(other, seen), other);
  await one.bringToFront();
  await driveAround(one, 1_200);
  await other.bringToFront();
  await until(
    "it sees the first move",
    async () => {
      const now = await look(other, seen);
      return Math.hypot(now[0] - x, now[1] - y) + Math.abs(now[2] - heading) > 0.5;
    },
    other,
  );
  await other.keyboard.down("Tab");
  await until("both are on the board", async () => /Kim[\s\S]*Lea|Lea[\s\S]*Kim/.test(await text(other, "#board-rows")), other);
  await other.keyboard.up("Tab");
  await one.close();
  await other.close();
}

export async function page_says_in_words_why_one_is_not_in({ server, browser }) {
  // The text and the focused field in one look: in two, the page could go on between them.
  const shown = () => {
    const problem = document.querySelector("#problem");
    return problem.checkVisibility() ? `${problem.innerText} @${document.activeElement.id}` : "";
  };
  const says = async (server, wishes, expected, prepare) => {
    const page = await browser.visit(server, wishes, prepare);
    await until(`it says ${expected}`, async () => expected.test(await page.evaluate(shown)), page);
    await page.close();
  };
  const bots = Bots.start(server, 1, "--name-prefix", "Max ", "--room", "words");
  const watcher = await enter(browser, server, { name: "Ann", room: "words" });
  await until("the bot is here", () => look(watcher, "(h) => h.picture.tankCount === 2"), watcher);
  await watcher.close();
  await says(server, { name: "Max 0", room: "words" }, /Another player.*has this name.*@name/);
  await bots.stop();

  const folder = mkdtempSync(join(tmpdir(), "halftrack-words-"));
  const key = join(folder, "key.pem");
  spawnSync(program(), ["token", "--new-key", key]);
  const strict = await Server.start("127.0.0.1:0", "--set", "auth.mode=tokens", "--set", `auth.public_key=${join(folder, "key.pub.pem")}`);
  const small = await Server.start("127.0.0.1:0", "--set", "rooms.capacity=1", "--set", "rooms.max=1");
  try {
    const page = await browser.visit(strict, { name: "Ned" });
    await until("a token is asked for", () => page.locator("#token").isVisible(), page);
    await page.locator("#token").fill("no.token.atall");
    await page.locator("#play").click();
    await until("it is refused", async () => /refused this token/.test(await text(page, "#problem")), page);
    const { stdout } = spawnSync(program(), ["token", "--key", key, "--name", "Ned"], { encoding: "utf8" });
    await page.locator("#token").fill(stdout.trim());
    await page.locator("#play").click();
    await plays(page);
    await page.close();

    const only = await enter(browser, small, { name: "Ola" });
    await says(small, { name: "Pia" }, /room is full/);
    await says(small, { name: "Pia", room: "nowhere" }, /does not exist.*@room-name/);
    await only.close();
  } finally {
    await strict.stop();
    await small.stop();
    rmSync(folder, { recursive: true });
  }

  await says(server, { name: "Quin", room: "words" }, /updated after this page was loaded[\s\S]*Reload/, (page) =>
    page.route("**/config.json", async (route) => {
      const site = await (await route.fetch()).json();
      site.arena.size[0] += 1;
      await route.fulfill({ json: site });
    }),
  );
}

export async function page_comes_back_when_it_is_cut_and_exports_what_happened({ server, browser }) {
  const page = await enter(browser, server, { name: "Rob", room: "cut" });
  await page.locator("#open-inside").click();
  await page.locator("#cut").click();
  await until("it says so", () => page.locator("#banner").isVisible(), page);
  await plays(page);
  await until("the banner is gone", () => page.locator("#banner").isHidden(), page);
  const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#export").click()]);
  const told = JSON.parse(readFileSync(await download.path(), "utf8"));
  assert(told.now.state === "logged_in" && told.samples.length > 0, Object.keys(told));
  await page.close();
}

export async function page_saves_a_bug_report_that_replays_exactly({ browser }) {
  const server = await Server.start();
  const bots = Bots.start(server, 5);
  try {
    const page = await enter(browser, server, { name: "Fay" });
    await page.locator("#open-inside").click();
    await page.locator("[data-plan=mobile]").click();
    await driveAround(page, 3_000);
    await page.locator("#cut").click();
    await until("it says so", () => page.locator("#banner").isVisible(), page);
    await plays(page);
    await driveAround(page, 1_000);
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator("#report").click()]);
    assert(/^halftrack-.*\d{4}-\d\d-\d\d.*\.flight$/.test(download.suggestedFilename()), download.suggestedFilename());
    const { stdout, stderr, status } = spawnSync(program(), ["flight", await download.path(), "--json"]);
    assert(status === 0, String(stderr), String(stdout));
    const told = JSON.parse(String(stdout));
    assert(told.frames > 100 && told.exact_frames === told.frames && told.difference === null, told);
    assert(told.sessions.filter(({ state }) => state === "logged in").length === 2, told.sessions);
    await page.close();
    return `${told.frames} frames, ${told.bytes} bytes, ${told.corrections.length} corrections`;
  } finally {
    await bots.stop();
    await server.stop();
  }
}

export async function page_opens_the_inside_view_once_it_can_be_loaded({ server, browser }) {
  const page = await enter(browser, server, { name: "Sam", room: "panel" }, (page) =>
    page.route(/assets\/panel.*/, (route) => route.abort()),
  );
  await page.locator("#open-inside").click();
  await until("it says so", async () => /could not be loaded/.test(await text(page, "#banner")), page);
  assert((await page.locator("#open-inside").getAttribute("aria-expanded")) === "false", "it is open all the same");
  await page.unroute(/assets\/panel.*/);
  await page.locator("#open-inside").click();
  await until("it opens", () => page.locator("#inside").isVisible(), page);
  assert((await page.locator("#inside").evaluate((aside) => getComputedStyle(aside).position)) === "absolute", "it has no style");
  await page.close();
}

export async function page_gives_the_tour_once({ server, browser }) {
  const page = await enter(browser, server, { name: "Sue", room: "tour", tour: "" });
  const delay = () => look(page, "(h) => h.game.diagnostics().sample.rtt_ms");
  await until("it is offered", () => page.locator("#tour").isVisible(), page);
  await page.locator("#tour-next").click();
  assert(/prediction off/.test(await text(page, "#tour-title")), await text(page, "#tour-title"));
  await until("it is far", async () => (await delay()) > 190, page);
  await page.locator("#tour-next").click();
  assert(/prediction on/.test(await text(page, "#tour-title")), await text(page, "#tour-title"));
  await page.locator("#tour-next").click();
  await until("the panel opens", () => page.locator("#inside").isVisible(), page);
  await page.locator("#tour-next").click();
  await until("it is near again", async () => (await delay()) < 60, page);
  await page.locator("#tour-next").click();
  assert(await page.locator("#tour").isHidden(), "it goes on");
  assert((await page.evaluate(() => localStorage["halftrack.tour"])) === "seen", "it is not remembered");
  await page.close();
}

export async function page_fits_a_phone_and_is_driven_by_thumbs({ server, browser }) {
  const page = await enter(browser, server, { name: "Tom", room: "phone" }, (page) => asPhone(browser, page));
  const outside = await page.evaluate(() =>
    [...document.querySelectorAll("#hud button, #hud .plate, #hud .stick, #map")]
      .filter((element) => element.checkVisibility())
      .map((element) => [element.id || element.className, element.getBoundingClientRect()])
      .filter(([, box]) => box.left < 0 || box.right > innerWidth || box.top < 0 || box.bottom > innerHeight)
      .map(([name]) => name),
  );
  assert(outside.length === 0, "cut off:", outside);
  const heading = () => look(page, "(h) => h.picture.drawn.heading");
  const before = await heading();
  await page.touch("touchStart", [{ x: 80, y: 620, id: 1 }]);
  await page.touch("touchMove", [{ x: 40, y: 600, id: 1 }]);
  await until("the tank turns", async () => Math.abs((await heading()) - before) > 0.2, page);
  await page.touch("touchMove", [{ x: 40, y: 600, id: 1 }, { x: 280, y: 620, id: 2 }]);
  await page.touch("touchMove", [{ x: 40, y: 600, id: 1 }, { x: 320, y: 600, id: 2 }]);
  await until("it fires", () => look(page, "(h) => h.events.some((event) => event.type === 'fired' && event.own)"), page);
  await page.touch("touchEnd", []);
  await until("it stands", () => look(page, "(h) => h.game.at(28) === 0 && h.game.at(29) === 0"), page);
  await page.close();
}

export async function page_is_driven_by_a_gamepad({ server, browser }) {
  const page = await enter(browser, server, { name: "Uwe", room: "pad" }, (page) =>
    page.addInitScript(() => {
      const button = (pressed) => ({ pressed, touched: pressed, value: Number(pressed) });
      window.pad = { mapping: "standard", axes: [0, 0, 0, 0], buttons: Array.from({ length: 16 }, () => button(false)) };
      navigator.getGamepads = () => [window.pad];
      window.press = () => (window.pad.buttons[7] = button(true));
    }),
  );
  const heading = () => look(page, "(h) => h.picture.drawn.heading");
  const before = await heading();
  await page.evaluate(() => (window.pad.axes[0] = -1));
  await until("the tank turns left", async () => (await heading()) - before > 0.2 || (await heading()) < before - 3, page);
  await page.evaluate(() => {
    window.pad.axes = [0, 0, 0, 1];
    window.press();
  });
  const south = "(h) => h.events.some((event) => event.type === 'fired' && event.own && Math.abs(Math.sin(event.aim) + 1) < 0.01)";
  await until("it fires to the south", () => look(page, south), page);
  await page.close();
}

export async function page_is_reached_by_keys_and_read_in_both_themes({ server, browser }) {
  const page = await enter(browser, server, { name: "Una", room: "keys" });
  await page.locator("#arena").focus();
  await page.keyboard.press("i");
  await until("the panel is there", () => page.locator("#inside").isVisible(), page);
  const nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input")]
      .filter((control) => !(control.ariaLabel || control.textContent.trim() || control.labels?.length || control.title))
      .map((control) => control.outerHTML),
  );
  assert(nameless.length === 0, "without a name:", nameless);
  await page.keyboard.press("Escape");
  const focused = await page.evaluate(() => [document.activeElement.id, getComputedStyle(document.activeElement).outlineStyle]);
  assert(focused.join() === "open-board,solid", focused);
  for (const theme of ["dark", "light"]) {
    const pairs = await page.evaluate((theme) => {
      document.documentElement.dataset.theme = theme;
      const style = getComputedStyle(document.documentElement);
      const luminance = (name) => {
        const hex = style.getPropertyValue(name).trim();
        const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
        const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const on = (text, ground) => {
        const [light, dark] = [luminance(text), luminance(ground)].sort((one, other) => other - one);
        return [`${text} on ${ground}`, (light + 0.05) / (dark + 0.05)];
      };
      const grounds = ["--solid", "--raised"];
      const texts = ["--text", "--quiet", "--accent", "--good", "--bad"];
      return [...texts.flatMap((text) => grounds.map((ground) => on(text, ground))), on("--on-accent", "--accent")];
    }, theme);
    const faint = pairs.filter(([, contrast]) => contrast < 4.5);
    assert(faint.length === 0, theme, faint);
  }
  await page.close();
}
