// A server and a browser for tests. Everything that is started here is ended here.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { front } from "./front.mjs";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const BROWSERS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const PATIENCE = 20_000;

/** The program: `TANKS`, or what was built last. */
export function program() {
  const found = [process.env.TANKS, join(ROOT, "target/release/tanks"), join(ROOT, "target/debug/tanks")];
  const path = found.find((path) => path && existsSync(path));
  if (!path) throw new Error("there is no server: `cargo build --release -p tanks-server`, or set TANKS");
  return path;
}

export class Server {
  /** Servers that were started and not stopped: a process of ours does not end before them. */
  static running = new Set();

  /** On `listen`, by default any port of this machine. */
  static async start(listen = "127.0.0.1:0", ...more) {
    const server = new Server();
    server.child = spawn(program(), ["serve", "--listen", listen, ...more], { stdio: ["ignore", "pipe", "pipe"] });
    Server.running.add(server);
    server.said = "";
    server.ended = new Promise((resolve) => server.child.once("exit", resolve));
    for (const stream of [server.child.stdout, server.child.stderr]) {
      stream.on("data", (text) => (server.said += text));
    }
    server.url = await until("the server listens", () => /http:\/\/[^\s]+/.exec(server.said)?.[0]);
    server.address = server.url.replace("http://", "").replace(/\/+$/, "");
    server.url = process.env.DIST ? await front(resolve(process.env.DIST), server.address) : `http://${server.address}`;
    return server;
  }

  async stop(signal = "SIGKILL") {
    Server.running.delete(this);
    this.child.kill(signal);
    await this.ended;
  }
}

/** Bots that fight on a server, until they are stopped. */
export class Bots {
  static start(server, count, ...more) {
    const bots = new Bots();
    const options = ["--connect", `http://${server.address}`, "--count", String(count), "--seconds", "3600", "--quiet", ...more];
    bots.child = spawn(program(), ["bots", ...options], { stdio: "ignore" });
    bots.ended = new Promise((resolve) => bots.child.once("exit", resolve));
    return bots;
  }

  async stop() {
    this.child.kill("SIGKILL");
    await this.ended;
  }
}

export class Browser {
  /** `more` are options of playwright's contexts. */
  static async start(more = {}) {
    const executablePath = BROWSERS.find((path) => path && existsSync(path));
    if (!executablePath) throw new Error("there is no browser: install chromium, or set CHROMIUM");
    const browser = new Browser();
    browser.problems = [];
    browser.folder = mkdtempSync(join(tmpdir(), "halftrack-browser-"));
    browser.context = await chromium.launchPersistentContext(browser.folder, {
      executablePath,
      headless: true,
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
      ...more,
    });
    return browser;
  }

  /** The client alone, of a player of this name; `prepare` may change the page before it loads. */
  async join(server, wishes, prepare = async () => {}) {
    const page = await this.context.newPage();
    this.watch(page);
    await prepare(page);
    const answer = await page.goto(`${server.url}/harness.html?${new URLSearchParams(wishes)}`);
    assert(answer.ok(), "the server has no page in it: build it after `cargo xtask web`");
    await playing(page);
    return page;
  }

  /** The page itself, for somebody who has seen the tour unless `prepare` says otherwise. */
  async visit(server, { name, room, tour = "seen", theme = "dark" }, prepare = async () => {}) {
    const page = await this.context.newPage();
    this.watch(page);
    await page.addInitScript(
      ([name, tour, theme]) => {
        const keep = (key, value) => value && localStorage.setItem(`halftrack.${key}`, value);
        localStorage.clear();
        keep("name", name);
        keep("tour", tour);
        keep("theme", theme);
      },
      [name, tour, theme],
    );
    await prepare(page);
    await page.goto(`${server.url}/?${new URLSearchParams(room ? { room } : {})}`);
    return page;
  }

  /** Takes note of errors that the page does not catch, and of all that its Content-Security-Policy does not allow. */
  watch(page) {
    page.on("pageerror", (problem) => this.problems.push(problem.message));
    page.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) this.problems.push(message.text());
    });
  }

  /** Errors of pages that nobody caught, since the last time. */
  takeProblems() {
    return this.problems.splice(0);
  }

  async stop() {
    await this.context.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Waits until the page plays. */
export async function playing(page) {
  await until("the page plays", () => page.evaluate(() => window.harness?.game.has(1 | 2) && window.harness.game.state === "logged_in"), page);
}

/** What the harness of a page says: `what` is a function that gets it. */
export function ask(page, what, ...rest) {
  return page.evaluate(`(${what})(window.harness, ...${JSON.stringify(rest)})`);
}

/** Waits until something is so, and gives what it was. */
export async function until(what, isSo, page) {
  const start = Date.now();
  for (;;) {
    const found = await isSo();
    if (found) return found;
    if (Date.now() - start > PATIENCE) {
      const events = page && (await page.evaluate(() => JSON.stringify(window.harness?.events ?? [document.body.innerText, window.__halftrack?.state, window.__halftrack?.events.slice(-20)])));
      throw new Error(`not in ${PATIENCE} ms: ${what} ${events ?? ""}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function assert(holds, ...otherwise) {
  if (!holds) throw new Error(otherwise.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join(" "));
}

export { ROOT };
