// The wasm client in a real browser, against the real server.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT, Server, ask, assert, playing, until } from "./rig.mjs";

const DRAWN = 10;
const CORRECTIONS = 42;
const EVENTS = "(harness, kind) => harness.events.filter((event) => event.type === kind)";
const at = (page, index) => ask(page, "(harness, index) => harness.game.at(index)", index);

export async function joins_by_webtransport_and_drives({ server, browser }) {
  const page = await browser.join(server, { name: "Ada" });
  const [transport] = await ask(page, EVENTS, "transport");
  assert(transport.kind === "webtransport", transport);
  const [x, y] = [await at(page, DRAWN), await at(page, DRAWN + 1)];
  await page.keyboard.down("w");
  await page.keyboard.down("a");
  const away = async () => Math.hypot((await at(page, DRAWN)) - x, (await at(page, DRAWN + 1)) - y);
  await until("the own tank moves", async () => (await away()) > 3, page);
  await page.keyboard.up("w");
  await page.keyboard.up("a");
  await until("states come", async () => (await ask(page, "(h) => h.game.diagnostics().client.snapshots")) > 20, page);
  const told = await ask(page, "(harness) => harness.game.diagnostics()");
  assert(told.transport === "webtransport" && told.client.malformed === 0, told.client);
  assert(told.traffic.datagrams_up > 10 && told.traffic.datagrams_dropped === 0, told.traffic);
  const unexplained = told.causes.find(([cause]) => cause === "unexplained");
  assert(unexplained[1] === 0, told.recent);
  await page.close();
}

export async function reproduces_the_golden_hash({ server, browser }) {
  const native = /[0-9a-f]{4}(_[0-9a-f]{4}){3}/.exec(readFileSync(join(ROOT, "crates/tanks/tests/suite/golden.rs"), "utf8"))[0];
  const page = await browser.join(server, { name: "Gold" });
  const found = await ask(page, "(harness) => harness.golden_hash(1_000_000)");
  assert(found === native.replaceAll("_", ""), found, "in the browser, natively", native);
  await page.close();
}

export async function takes_the_websocket_where_there_is_no_webtransport({ server, browser }) {
  const page = await browser.join(server, { name: "Bob" }, (page) =>
    page.addInitScript(() => delete window.WebTransport),
  );
  const [transport] = await ask(page, EVENTS, "transport");
  assert(transport.kind === "websocket" && /has no WebTransport/.test(transport.why), transport);
  await until("snapshots come", async () => (await ask(page, "(h) => h.game.diagnostics().client.snapshots")) > 10, page);
  await page.close();
}

export async function takes_the_websocket_where_webtransport_fails({ server, browser }) {
  const page = await browser.join(server, { name: "Cleo" }, (page) =>
    page.route("**/config.json", async (route) => {
      const site = await (await route.fetch()).json();
      site.quic.certificate_hashes = ["00".repeat(32)];
      await route.fulfill({ json: site });
    }),
  );
  const [transport] = await ask(page, EVENTS, "transport");
  assert(transport.kind === "websocket" && transport.why.length > 10, transport);
  await page.close();
}

export async function comes_back_when_it_is_cut({ server, browser }) {
  const page = await browser.join(server, { name: "Dora" });
  const own = await at(page, 3);
  await ask(page, "(harness) => harness.game.cut()");
  await until("it notices", async () => (await ask(page, "(harness) => harness.game.state")) !== "logged_in", page);
  await playing(page);
  assert((await at(page, 3)) === own, "another player than before");
  assert((await ask(page, EVENTS, "restarted")).length === 0, "the session began anew");
  await page.close();
}

export async function finds_a_server_again_that_has_another_certificate({ browser }) {
  let server = await Server.start();
  try {
    const { address } = server;
    const hashes = async () => (await (await fetch(`${server.url}/config.json`)).json()).quic.certificate_hashes;
    const before = await hashes();
    const page = await browser.join(server, { name: "Emil" });
    await server.stop();
    await until("it notices", async () => (await ask(page, "(harness) => harness.game.state")) !== "logged_in", page);
    server = await Server.start(address);
    const after = await hashes();
    assert(!after.some((hash) => before.includes(hash)), "it has the same certificate", before, after);
    await playing(page);
    const transports = await ask(page, EVENTS, "transport");
    assert(transports.length === 2 && transports[1].kind === "webtransport", transports);
    await page.close();
  } finally {
    await server.stop();
  }
}

export async function a_page_without_frames_grows_nothing_and_is_back_at_once({ server, browser }) {
  const [page, other] = [await browser.join(server, { name: "Fay" }), await browser.join(server, { name: "Gus" })];
  await other.keyboard.down("w");
  await ask(page, "(harness) => { harness.paused = true; }");
  const size = () => ask(page, "(harness) => harness.memory()");
  const before = await size();
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  assert((await size()) === before, "memory grew from", before, "to", await size());
  await ask(page, "(harness) => { harness.paused = false; }");
  await new Promise((resolve) => setTimeout(resolve, 500));
  const [state, age] = await ask(page, "(h) => [h.game.state, Math.max(...[...h.game.tanks()].map((row) => h.game.at(row + 14)))]");
  assert(state === "logged_in" && age < 300, state, age);
  await page.close();
  await other.close();
}

export async function a_bad_network_is_corrected_for_and_explained({ server, browser }) {
  const page = await browser.join(server, { name: "Hal" });
  await ask(page, "(harness) => harness.game.setLink('both', { delay_ms: 40, jitter_ms: 8, loss: 0.05, burst: 2 })");
  for (let turn = 0; turn < 12; turn++) {
    await page.keyboard.down("w");
    await page.keyboard.down(turn % 2 ? "a" : "d");
    await new Promise((resolve) => setTimeout(resolve, 250));
    await page.keyboard.up(turn % 2 ? "a" : "d");
  }
  const told = await ask(page, "(harness) => harness.game.diagnostics()");
  assert(told.sample.lead_ms > 40, told.sample);
  assert(Object.fromEntries(told.causes).unexplained === 0, told.causes);
  assert((await at(page, CORRECTIONS)) < 40, told.causes);
  assert((await ask(page, "(harness) => harness.game.export()")).samples.length > 10);
  await page.close();
}

export async function a_panic_is_told_in_words({ server, browser }) {
  const page = await browser.join(server, { name: "Ida" });
  const thrown = await ask(page, "(harness) => { try { harness.break_down(); } catch (error) { return String(error); } }");
  assert(/has broken down.*as the page wished/s.test(thrown), "thrown:", thrown);
  const told = await ask(page, "(harness) => harness.broken");
  assert(/has broken down.*browser/s.test(told ?? ""), "told:", told ?? "nothing");
  await page.close();
}
