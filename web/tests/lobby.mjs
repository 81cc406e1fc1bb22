// The form to join, in a real browser: names, rooms, tokens, tabs, and the order of Tab.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, assert, program, until } from "./rig.mjs";
import { enter, look, ownName, plays, text } from "./visits.mjs";

export async function lobby_says_which_characters_a_room_name_has({ server, browser }) {
  const page = await browser.visit(server, { name: "Abe", room: "my room!" });
  await until("a problem is told", () => page.locator("#problem").isVisible(), page);
  assert(/a to z, A to Z, 0 to 9, - and _/.test(await text(page, "#problem")), await text(page, "#problem"));
  assert((await page.evaluate(() => document.activeElement.id)) === "room-name", "the field is not the room's");
  await page.locator("#room-name").fill("my-room");
  await page.keyboard.press("Enter");
  await plays(page);
  await page.close();
}

export async function lobby_keeps_the_name_of_a_link_over_a_reload({ server, browser }) {
  const page = await browser.visit(server, { name: "Other", room: "named" });
  await plays(page);
  await page.goto(`${server.url}/?name=Zoe&room=named`);
  await plays(page);
  assert((await ownName(page)) === "Zoe", await ownName(page));
  assert(!page.url().includes("Zoe"), "the link to share has a name:", page.url());
  await page.reload();
  await plays(page);
  assert((await ownName(page)) === "Zoe", "after a reload:", await ownName(page));
  await page.close();
}

export async function lobby_says_that_the_other_tab_is_the_player_and_takes_over({ server, browser }) {
  const first = await enter(browser, server, { name: "Max", room: "tabs" });
  const second = await browser.visit(server, { name: "Max", room: "tabs" });
  await until("it says so", async () => /That is you.*another tab/.test(await text(second, "#problem")), second);
  await second.getByRole("button", { name: "Play here instead" }).click();
  await plays(second);
  await until("the first has left", async () => /now play in another tab/.test(await text(first, "#problem")), first);
  await first.close();
  await second.close();
}

export async function lobby_reads_name_and_room_from_a_token({ browser }) {
  const folder = mkdtempSync(join(tmpdir(), "halftrack-token-"));
  const key = join(folder, "key.pem");
  spawnSync(program(), ["token", "--new-key", key]);
  const strict = await Server.start("127.0.0.1:0", "--set", "auth.mode=tokens", "--set", `auth.public_key=${join(folder, "key.pub.pem")}`);
  try {
    const { stdout } = spawnSync(program(), ["token", "--key", key, "--name", "Zoë 7", "--room", "duel"], { encoding: "utf8" });
    const page = await browser.visit(strict, {});
    await until("a token is asked for", () => page.locator("#token").isVisible(), page);
    await page.locator("#token").fill(stdout.trim());
    assert(await page.locator("#name").isHidden(), "the name is asked for");
    assert((await text(page, "#token-name")) === "You will play as Zoë 7.", await text(page, "#token-name"));
    assert((await page.locator("#room-name").inputValue()) === "duel", "the room is asked for");
    await page.locator("#play").click();
    await plays(page);
    assert((await ownName(page)) === "Zoë 7", await ownName(page));
    await page.reload();
    await plays(page);
    await page.close();
  } finally {
    await strict.stop();
    rmSync(folder, { recursive: true });
  }
}

export async function lobby_is_walked_by_tab_in_the_order_that_is_seen({ server, browser }) {
  const page = await browser.visit(server, {});
  await until("the form is ready", () => page.locator("#play").isEnabled(), page);
  const walked = [];
  for (let press = 0; press < 5; press++) {
    walked.push(await page.evaluate(() => document.activeElement.id || document.activeElement.className));
    await page.keyboard.press("Tab");
  }
  assert(walked.join() === "name,room-name,play,watch,plain theme", walked);
  const tops = await page.evaluate(() => ["name", "room-name", "play", "watch"].map((id) => document.getElementById(id).getBoundingClientRect().top));
  assert(tops.every((top, index) => index === 0 || top > tops[index - 1]), "not from top to bottom:", tops);
  await page.locator("#name").focus();
  await page.keyboard.press("Shift+Tab");
  const before = await page.evaluate(() => document.activeElement.id);
  assert(before !== "arena", "the arena behind the form is reached");
  await page.close();
}

export async function lobby_explains_keys_and_gamepad({ server, browser }) {
  const page = await browser.visit(server, {});
  await until("the form is ready", () => page.locator("#play").isEnabled(), page);
  const shown = await page.locator("#join").innerText();
  for (const word of ["drive", "aim", "fire", "scores", "look inside", "sound", "gamepad", "left stick drives"]) {
    assert(shown.includes(word), `nothing is said of ${word}:`, shown);
  }
  await page.locator("#name").fill("Nan");
  await page.locator("#room-name").fill("help");
  await page.locator("#play").click();
  await plays(page);
  await page.keyboard.press("h");
  const help = await page.locator("#help").innerText();
  for (const word of ["Keyboard", "Gamepad", "Touch", "trigger", "right thumb"]) assert(help.includes(word), word, help);
  await page.keyboard.press("h");
  assert(await page.locator("#help").isHidden(), "it stays");
  assert((await look(page, "(h) => h.game.at(28)")) === 0, "the key drives");
  await page.close();
}
