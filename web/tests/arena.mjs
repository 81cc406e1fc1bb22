// Playing, in a real browser: the first visit, fairness, effects, sound, colours, and the ways to drive.

import { Bots, Server, assert, until } from "./rig.mjs";
import { asPhone, driveAround, enter, hide, look, overlap, plays, text, wait } from "./visits.mjs";

/** Bots that fight on a small ground, where everyone is in sight. */
async function brawl(count, play = "brawl") {
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=open:1");
  const bots = Bots.start(server, count, "--play", play);
  return { server, end: () => bots.stop().then(() => server.stop()) };
}

const kinds = (page, kind) => look(page, "(h, kind) => h.events.filter((event) => event.type === kind).length", kind);

export async function arena_stops_when_the_gamepad_is_unplugged({ server, browser }) {
  const page = await enter(browser, server, { name: "Gil", room: "unplug" }, (page) =>
    page.addInitScript(() => {
      const buttons = Array.from({ length: 16 }, () => ({ pressed: false, touched: false, value: 0 }));
      window.pads = [{ mapping: "standard", axes: [0, 0, 0, 0], buttons }];
      navigator.getGamepads = () => window.pads;
    }),
  );
  await page.evaluate(() => (window.pads[0].axes[1] = -1));
  await until("it drives", () => look(page, "(h) => h.game.at(28) === 1"), page);
  await page.evaluate(() => (window.pads = [null, null]));
  await until("it stands", () => look(page, "(h) => h.game.at(28) === 0"), page);
  await page.close();
}

export async function arena_shows_nothing_of_what_happened_while_the_tab_was_hidden({ browser }) {
  const { server, end } = await brawl(6);
  try {
    const page = await enter(browser, server, { name: "Hob" });
    await until("they fight", async () => (await kinds(page, "death")) > 0, page);
    await hide(page, true);
    await wait(7_000);
    const before = await kinds(page, "fired");
    await page.evaluate(() => document.getElementById("feed").replaceChildren());
    const [moving, lines] = await page.evaluate(
      () =>
        new Promise((done) => {
          Object.defineProperty(document, "hidden", { value: false, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
          // The page has asked for its frame before: this comes after it.
          requestAnimationFrame(() => done([window.__halftrack.moving(), document.getElementById("feed").children.length]));
        }),
    );
    const missed = (await kinds(page, "fired")) - before;
    assert(missed > 10, "nothing happened:", missed);
    assert(moving < 40 && lines === 0, moving, "effects and", lines, "kills at once, of", missed, "shots");
    await until("effects go on", () => look(page, "(h) => h.moving() > 40"), page);
    await page.close();
    return `${missed} shots, ${moving} effects`;
  } finally {
    await end();
  }
}

export async function arena_shows_the_round_trip_or_the_state_of_the_link({ server, browser }) {
  const page = await enter(browser, server, { name: "Ivo", room: "ping" });
  const ping = () => text(page, "#ping");
  await until("a number", async () => /^\d+ ms$/.test(await ping()), page);
  await look(page, "(h) => h.game.setLink('both', { delay_ms: 60, jitter_ms: 25, loss: 0.03, burst: 3 })");
  await until("the whole of it", async () => parseInt(await ping()) >= 115, page);
  await look(page, "(h) => h.game.setBlocked(true)");
  await until("there is none", async () => (await ping()) === "no answer", page);
  await until("the link is down", async () => (await ping()) === "link is down", page);
  await look(page, "(h) => { h.game.setBlocked(false); h.game.setLink('both', {}); }");
  await until("and back", async () => /^\d+ ms$/.test(await ping()), page);
  await page.close();
}

export async function arena_shows_a_chip_while_something_is_altered({ server, browser }) {
  const page = await enter(browser, server, { name: "Jan", room: "chip" });
  const chip = page.locator("#altered");
  assert(await chip.isHidden(), "a chip for nothing");
  await page.locator("#open-inside").click();
  await page.locator("[data-plan=mobile]").click();
  await page.locator("#switch-prediction").click();
  assert(await chip.isHidden(), "the panel says it already");
  await page.locator("#open-inside").click();
  assert((await text(page, "#altered-open")) === "Network: mobile · Prediction off", await text(page, "#altered-open"));
  await page.locator("#altered-open").click();
  await until("the panel is open", () => page.locator("#inside").isVisible(), page);
  await page.locator("#open-inside").click();
  await page.locator("#altered-reset").click();
  assert(await chip.isHidden(), "it stays");
  await until("the network is good again", () => look(page, "(h) => h.game.diagnostics().sample.rtt_ms < 60"), page);
  await page.close();
}

export async function arena_has_no_card_over_the_own_tank_on_the_first_visit({ browser }) {
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=proving-ground");
  try {
    for (const phone of [false, true]) {
      for (const room of ["one", "two", "three"]) {
        const page = await enter(browser, server, { name: "Kay", room, tour: "" }, async (page) => {
          if (phone) await asPhone(browser, page);
          else await page.setViewportSize({ width: 1280, height: 800 });
        });
        await until("the tour is offered", () => page.locator("#tour").isVisible(), page);
        await wait(300);
        const covered = await look(
          page,
          `(h) => {
            const { x, y } = h.picture.drawn;
            // With its ring and its name, metres.
            const [[left, top], [right, bottom]] = [h.onPage(x - 2.5, y + 4), h.onPage(x + 2.5, y - 2.5)];
            return ["tour", "own", "stick-drive", "stick-aim"].filter((id) => {
              const box = document.getElementById(id).getBoundingClientRect();
              return box.width > 0 && left < box.right && box.left < right && top < box.bottom && box.top < bottom;
            });
          }`,
        );
        assert(covered.length === 0, phone ? "phone" : "desktop", room, "covered by", covered);
        await page.close();
      }
    }
  } finally {
    await server.stop();
  }
}

export async function arena_bots_spare_a_newcomer_until_it_drives({ browser }) {
  const { server, end } = await brawl(5);
  try {
    const page = await enter(browser, server, { name: "Lou", tour: "" });
    await until("they fight", async () => (await kinds(page, "death")) >= 3, page);
    const hits = "(h) => h.events.filter((event) => event.type === 'damage' && event.target === h.game.at(3)).length";
    assert((await look(page, hits)) === 0, "the newcomer was shot at");
    await driveAround(page, 1_000);
    await until("it is fair game now", async () => (await look(page, hits)) > 0, page);
    await page.close();
  } finally {
    await end();
  }
}

export async function arena_scores_are_those_of_the_room({ browser }) {
  const { server, end } = await brawl(5);
  try {
    const first = await enter(browser, server, { name: "Mia" });
    const scores = (page) => look(page, "(h) => Object.fromEntries(h.game.fighters().map(({ name, kills, deaths }) => [name, [kills, deaths]]))");
    const sum = (scores) => Object.values(scores).reduce((total, [kills]) => total + kills, 0);
    const before = await until("some kills", async () => {
      const found = await scores(first);
      return sum(found) >= 4 && found;
    }, first);
    const second = await enter(browser, server, { name: "Ned" });
    const after = await until("the scores are there", async () => {
      const found = await scores(second);
      return sum(found) >= sum(before) && found;
    }, second);
    for (const [name, [kills, deaths]] of Object.entries(before)) {
      assert(after[name] && after[name][0] >= kills && after[name][1] >= deaths, name, before, after);
    }
    await second.reload();
    await plays(second);
    await until("also after a reload", async () => sum(await scores(second)) >= sum(before), second);
    await second.keyboard.down("Tab");
    await until("the board says so", async () => /7 players in this room/.test(await text(second, "#board-note")), second);
    await first.close();
    await second.close();
  } finally {
    await end();
  }
}

export async function arena_shows_machines_as_tanks_with_a_mark_of_their_own({ browser }) {
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=open:1", "--set", "rooms.machines=5");
  try {
    const page = await enter(browser, server, { name: "Oda" }, (page) =>
      page.addInitScript(() => {
        window.written = new Set();
        const { fillText } = CanvasRenderingContext2D.prototype;
        CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
          window.written.add(text);
          return fillText.call(this, text, ...rest);
        };
      }),
    );
    await until("they are here", () => look(page, "(h) => h.picture.tankCount === 6"), page);
    const { machines, told, listed } = await look(
      page,
      `(h) => {
        const tanks = h.picture.tanks.slice(0, h.picture.tankCount);
        const machines = tanks.filter((tank) => tank.machine);
        return {
          machines: machines.map((tank) => tank.fighter),
          told: machines.every((tank) => !tank.own && Number.isFinite(tank.told.x)),
          listed: h.game.fighters().slice(1),
        };
      }`,
    );
    assert(machines.length === 5 && machines.every((key) => key > 2 ** 32 && key < 2 ** 49 && key % 2 === 1), machines);
    assert(told, "no outlines of machines for the inside view");
    assert(listed.map(({ fighter }) => fighter).join() === machines.join(), listed, machines);
    const names = listed.map(({ name }) => name);
    assert(names.every((name) => /^[A-Z][a-z]+-\d\d$/.test(name)), names);
    await until("their names are drawn", () => page.evaluate((names) => names.every((name) => window.written.has(name)), names), page);
    await page.keyboard.down("Tab");
    await until("the board counts them", async () => /1 player and 5 machines in this room/.test(await text(page, "#board-note")), page);
    assert((await page.locator("#board-rows .colour.machine").count()) === 5, "marks on the board");
    await page.keyboard.up("Tab");
    await until("one is in the feed", async () => (await page.locator("#feed .name.machine").count()) > 0, page);
    const colours = await look(page, "(h) => h.game.fighters().map(({ fighter, own }) => h.colourOf(fighter, own))");
    assert(new Set(colours).size === 6, "two have the same colour:", colours);
    await page.close();
    return names.join(", ");
  } finally {
    await server.stop();
  }
}

export async function arena_gives_sixteen_players_sixteen_colours({ server, browser }) {
  const page = await enter(browser, server, { name: "Ola", room: "colours" });
  const nearest = await look(
    page,
    `(h) => {
      const lab = (hex) => {
        const [r, g, b] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        const f = (t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
        const [x, y, z] = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883].map(f);
        return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
      };
      // Numbers of players go up for ever: these have the same remainder by every small number. Keys are twice as large.
      const players = Array.from({ length: 16 }, (_, index) => 2 * (9 + index * 55_440));
      // Machines that were there before take no colour away from players, and none that a player has.
      const machines = [2 ** 49 - 1, 2 ** 48 + 19, 2 * 9 + 1];
      for (const machine of machines) h.colourOf(machine, false);
      const fighters = [...players, ...machines].map((fighter) => h.colourOf(fighter, false));
      const colours = [h.colourOf(0, true), ...fighters].map(lab);
      let nearest = Infinity;
      for (const [index, one] of colours.entries()) {
        for (const other of colours.slice(0, index)) nearest = Math.min(nearest, Math.hypot(...one.map((part, at) => part - other[at])));
      }
      return nearest;
    }`,
  );
  assert(nearest > 25, "two colours are only", nearest, "apart");
  await page.close();
  return `at least ${nearest.toFixed(0)} apart`;
}

export async function arena_on_a_phone_shows_room_and_invite_and_no_stick_over_hit_points({ server, browser }) {
  const page = await enter(browser, server, { name: "Pam", room: "pocket" }, (page) => asPhone(browser, page));
  await until("the layout is there", () => page.locator("#own").isVisible(), page);
  await until("the round is there", () => page.locator("#round").isVisible(), page);
  const cut = await page.evaluate(() => ["room", "round", "ping"].filter((id) => {
    const { scrollWidth, clientWidth } = document.getElementById(id);
    return scrollWidth > clientWidth && clientWidth > 0;
  }));
  assert(cut.length === 0, "cut off:", cut);
  for (const selector of ["#share", "#room", "#ping", "#hp"]) assert(await page.locator(selector).isVisible(), selector, "is not shown");
  assert((await text(page, "#room")) === "pocket", await text(page, "#room"));
  const small = () =>
    page.evaluate(() =>
      [...document.querySelectorAll("button, .switch, .ghost, .slider")]
        .filter((each) => each.checkVisibility() && !each.closest("[inert]"))
        .map((each) => [each.id || each.textContent, each.getBoundingClientRect()])
        .filter(([, box]) => box.width < 44 || box.height < 44)
        .map(([name, box]) => `${name}: ${box.width} x ${box.height}`),
    );
  assert((await small()).length === 0, "too small for a thumb:", await small());
  for (const words of ["12 ms", "link is down"]) {
    await page.evaluate((words) => (document.getElementById("ping").textContent = words), words);
    assert(!(await overlap(page, "#own", ".place")) && !(await overlap(page, "#own", ".menu")), "the plates overlap");
  }
  // Wherever a thumb comes down.
  for (const [x, y] of [[60, 120], [150, 80], [70, 600]]) {
    await page.touch("touchStart", [{ x, y, id: 1 }]);
    assert(!(await overlap(page, "#stick-drive", "#own")), "a stick covers the hit points from", x, y);
    await page.touch("touchEnd", []);
  }
  await page.locator("#open-inside").click();
  await until("the panel is there", () => page.locator("#inside").isVisible(), page);
  assert((await small()).length === 0, "too small for a thumb, inside:", await small());
  await page.close();
}

export async function arena_stands_still_for_players_who_want_less_motion({ server, browser }) {
  const shoot = async (reducedMotion) => {
    const page = await enter(browser, server, { name: "Quy", room: reducedMotion }, (page) => page.emulateMedia({ reducedMotion }));
    await page.locator("#arena").focus();
    let moving = 0;
    await until("it has fired", async () => {
      moving = await page.evaluate((most) => {
        dispatchEvent(new KeyboardEvent("keydown", { code: "Space" }));
        dispatchEvent(new KeyboardEvent("keyup", { code: "Space" }));
        return Math.max(most, window.__halftrack.moving());
      }, moving);
      return (await kinds(page, "fired")) > 0;
    }, page);
    const sound = await page.locator("#sound").getAttribute("aria-pressed");
    await page.close();
    return [moving, sound];
  };
  const [full, sound] = await shoot("no-preference");
  assert(full > 10 && sound === "true", "with motion:", full, sound);
  const [calm, silence] = await shoot("reduce");
  assert(calm === 0 && silence === "false", "without motion:", calm, silence);
}

export async function arena_reads_only_own_kills_aloud({ browser }) {
  const { server, end } = await brawl(5);
  try {
    const page = await enter(browser, server, { name: "Ria" });
    assert((await page.locator("#feed").getAttribute("aria-live")) === null, "the feed is live");
    await until("others die", async () => (await kinds(page, "death")) >= 2 && (await page.locator("#feed li").count()) > 0, page);
    assert((await text(page, "#aloud")) === "", await text(page, "#aloud"));
    await driveAround(page, 500);
    await until("the own death is read", async () => /^\S.* destroyed you\.$/.test(await text(page, "#aloud")), page);
    await page.close();
  } finally {
    await end();
  }
}

export async function arena_is_heard_and_muted({ browser }) {
  const { server, end } = await brawl(1, "roam");
  try {
    const page = await enter(browser, server, { name: "Sid" });
    await until("the bot is here", () => look(page, "(h) => h.picture.tankCount === 2"), page);
    const heard = () => look(page, "(h) => [...new Set(h.sounds)].sort().join()");
    await page.mouse.click(600, 300);
    await page.keyboard.down("w");
    await page.keyboard.down("a");
    await until("all of it", async () => {
      const bot = await look(page, "(h) => h.picture.tanks.slice(0, h.picture.tankCount).find((tank) => !tank.own)");
      await page.mouse.move(...(await look(page, "(h, x, y) => h.onPage(x, y)", bot.x, bot.y)));
      await page.mouse.down();
      await page.mouse.up();
      return (await heard()) === "explosion,hit,respawn,score,shot";
    }, page);
    await page.keyboard.up("w");
    await page.keyboard.up("a");
    await page.keyboard.press("m");
    assert((await page.locator("#sound").getAttribute("aria-pressed")) === "false", "it is not muted");
    const before = await look(page, "(h) => h.sounds.length");
    const shots = await kinds(page, "fired");
    await until("it shoots on", async () => {
      await page.keyboard.press("Space");
      return (await kinds(page, "fired")) > shots;
    }, page);
    assert((await look(page, "(h) => h.sounds.length")) === before, "it is heard all the same");
    const kept = await page.evaluate(() => localStorage["halftrack.sound"]);
    assert(kept === "off", "remembered:", kept);
    await page.close();
    const next = await enter(browser, server, { name: "Sid" }, (page) => page.addInitScript(() => localStorage.setItem("halftrack.sound", "off")));
    assert((await next.locator("#sound").getAttribute("aria-pressed")) === "false", "it is forgotten");
    await next.locator("#sound").click();
    await until("it is heard again", () => look(next, "(h) => h.sounds.includes('score')"), next);
    await next.close();
  } finally {
    await end();
  }
}

export async function arena_tells_of_its_link_without_speaking_of_https_on_a_secure_page({ server, browser }) {
  const page = await enter(browser, server, { name: "Tia", room: "badge" }, (page) => page.addInitScript(() => delete window.WebTransport));
  await plays(page);
  const why = await text(page, "#badge-why");
  assert(/this browser has no WebTransport/.test(why) && !/https|localhost/.test(why), why);
  await page.close();
}

export async function arena_shows_the_winner_of_a_round_and_begins_the_next_at_zero({ browser }) {
  const server = await Server.start("127.0.0.1:0", "--set", "rooms.arena=open:1", "--set", "rooms.round_s=20", "--set", "rooms.break_s=6");
  const bots = Bots.start(server, 6, "--play", "brawl");
  try {
    const page = await enter(browser, server, { name: "Ruth" });
    await until("a clock", async () => /^0:\d\d$/.test(await text(page, "#round")), page);
    await until("a round is over", () => look(page, "(h) => h.events.some((event) => event.type === 'round' && event.over)"), page);
    await until("the board is there", () => page.locator("#board").isVisible(), page);
    const { winner, best, number } = await look(
      page,
      `(h) => {
        const { winner, number } = h.events.findLast((event) => event.type === "round");
        const fighters = h.game.fighters().sort((one, other) => other.kills - one.kills || one.deaths - other.deaths);
        return { winner, number, best: fighters[0] };
      }`,
    );
    const verdict = await text(page, "#verdict");
    const expected = winner === null ? `Round ${number} is a draw.` : `${best.name} wins round ${number} with`;
    assert(verdict.startsWith(expected), verdict, "where", expected, "is right");
    assert((await text(page, "#aloud")) === verdict, "not for screen readers:", await text(page, "#aloud"));
    const fired = await look(page, "(h) => h.game.fire(0)");
    assert(fired === -5 || fired === -3, "a gun that fires in a break:", fired);
    assert(/begins in [1-6] s\.$/.test(await text(page, "#verdict-next")), await text(page, "#verdict-next"));
    await until("the next round", () => look(page, "(h, number) => h.events.some((event) => event.type === 'round' && !event.over && event.number === number + 1)", number), page);
    const kills = await look(page, "(h) => h.game.fighters().reduce((sum, { kills, deaths }) => sum + kills + deaths, 0)");
    assert(kills < 4, "scores of the round before:", kills);
    await until("the board is gone", () => page.locator("#board").isHidden(), page);
    await page.close();
    return verdict;
  } finally {
    await bots.stop().then(() => server.stop());
  }
}
