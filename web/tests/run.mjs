// `npm test`: every test of the browser, or those whose names hold the words that are given.

import * as arena from "./arena.mjs";
import * as bodies from "./bodies.mjs";
import * as client from "./client.mjs";
import * as inside from "./inside.mjs";
import * as lobby from "./lobby.mjs";
import * as page from "./page.mjs";
import { Browser, Server } from "./rig.mjs";
import * as watch from "./watch.mjs";

const wanted = process.argv.slice(2);
const tests = Object.entries({ ...client, ...page, ...lobby, ...arena, ...bodies, ...inside, ...watch }).filter(
  ([name]) => wanted.length === 0 || wanted.some((word) => name.includes(word)),
);
const server = await Server.start();
const browser = await Browser.start();
/** Runs one test. Gives its problem, if it has one. */
const attempt = async (name, test) => {
  const start = Date.now();
  try {
    const found = await test({ server, browser });
    const problems = browser.takeProblems();
    if (problems.length > 0) throw new Error(`the page had errors that nobody caught: ${problems.join("; ")}`);
    console.log(`ok      ${name} (${Date.now() - start} ms)${found ? `: ${found}` : ""}`);
  } catch (problem) {
    for (const page of browser.context.pages().slice(1)) await page.close();
    // A test that failed did not come to stop its own.
    for (const other of [...Server.running]) if (other !== server) await other.stop();
    browser.takeProblems();
    return problem;
  }
};

let failed = 0;
for (const [name, test] of tests) {
  // A shared machine stalls for seconds now and then, and real browsers and servers with it: a test has two tries.
  const first = await attempt(name, test);
  if (!first) continue;
  console.log(`again   ${name}: ${first.stack}`);
  const second = await attempt(name, test);
  if (!second) continue;
  failed += 1;
  console.log(`FAILED  ${name}: ${second.stack}`);
}
await browser.stop();
for (const each of [...Server.running]) await each.stop();
console.log(`${tests.length - failed} of ${tests.length} passed`);
process.exitCode = failed === 0 && tests.length > 0 ? 0 : 1;
