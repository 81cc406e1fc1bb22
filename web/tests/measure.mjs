// `node tests/measure.mjs [SECONDS [WORD...]]`: time to the first playable frame, and what a frame costs with 8 and with 100 tanks. The
// browser draws without a graphics card here: a desktop does better.

import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { Bots, Browser, ROOT, Server, until } from "./rig.mjs";

const SECONDS = Number(process.argv[2] ?? 10);
const SIZE = { width: 1280, height: 800 };
const SCENES = [
  { title: "8 tanks, proving ground", arena: "proving-ground", bots: 7, inside: false },
  { title: "8 tanks, inside view open", arena: "proving-ground", bots: 7, inside: true },
  { title: "100 tanks, open ground", arena: "open:100", bots: 99, inside: false },
  { title: "100 tanks, inside view open", arena: "open:100", bots: 99, inside: true },
  { title: "100 tanks, proving ground", arena: "proving-ground", bots: 99, inside: false },
];
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function at(numbers, share) {
  const sorted = [...numbers].sort((one, other) => one - other);
  return (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN).toFixed(1);
}

function sizes() {
  const dist = join(ROOT, "web/dist");
  const files = ["index.html", ...readdirSync(join(dist, "assets")).map((name) => join("assets", name))];
  const total = { page: 0, wasm: 0 };
  for (const file of files.filter((file) => !file.includes("harness"))) {
    total[file.endsWith(".wasm") ? "wasm" : "page"] += gzipSync(readFileSync(join(dist, file)), { level: 9 }).length;
  }
  return total;
}

async function measure({ title, arena, bots, inside }) {
  const server = await Server.start("127.0.0.1:0", "--set", `rooms.arena=${arena}`);
  // Twenty frames a second each: they share the machine with the browser.
  const company = Bots.start(server, bots, "--frame-hz", "20");
  const browser = await Browser.start({ viewport: SIZE });
  try {
    await wait(5_000);
    const page = await browser.visit(server, { name: "Ada" });
    await until("all are here", () => page.evaluate((count) => window.__halftrack?.picture?.tankCount === count, bots + 1), page);
    if (inside) await page.keyboard.press("i");
    await page.keyboard.down("w");
    await page.keyboard.down("a");
    await wait(2_000);
    await page.evaluate(() => {
      window.__halftrack.intervals.length = window.__halftrack.work.length = 0;
    });
    await wait(SECONDS * 1_000);
    const { work, intervals, firstFrame } = await page.evaluate(() => window.__halftrack);
    const late = intervals.filter((ms) => ms > 25).length;
    console.log(
      `${title}: first playable frame ${Math.round(firstFrame)} ms; ${work.length} frames in ${SECONDS} s, script ` +
        `${at(work, 0.5)} ms (p99 ${at(work, 0.99)}), apart ${at(intervals, 0.5)} ms (p99 ${at(intervals, 0.99)}), ${late} late`,
    );
  } finally {
    await browser.stop();
    await company.stop();
    await server.stop();
  }
}

const wanted = process.argv.slice(3);
const { page, wasm } = sizes();
console.log(`compressed: page ${page} bytes, wasm ${wasm} bytes`);
for (const scene of SCENES) {
  if (wanted.every((word) => scene.title.includes(word))) await measure(scene);
}
