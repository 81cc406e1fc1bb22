// A page from a folder in front of a server that was built before it: for whoever works on the page, with `DIST=dist`.

import { existsSync, readFileSync, statSync } from "node:fs";
import { createServer, request } from "node:http";
import { connect } from "node:net";
import { extname, join } from "node:path";

const KINDS = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
/** By address: a server that is started again on its port is found behind the same front. */
const fronts = new Map();

/** Its URL, for the server at `address`. It ends with the program. */
export async function front(dist, address) {
  if (fronts.has(address)) return fronts.get(address);
  const [host, port] = address.split(":");
  const server = createServer((incoming, outgoing) => {
    const { pathname } = new URL(incoming.url, "http://front");
    const path = join(dist, pathname === "/" ? "index.html" : pathname);
    if (path.startsWith(dist) && existsSync(path) && statSync(path).isFile()) {
      outgoing.writeHead(200, { "content-type": KINDS[extname(path)] ?? "application/octet-stream" });
      return outgoing.end(readFileSync(path));
    }
    const passed = request({ host, port, path: incoming.url, headers: incoming.headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on("error", () => outgoing.writeHead(502).end());
    passed.end();
  });
  server.on("upgrade", (incoming, socket, head) => {
    const behind = connect(Number(port), host, () => {
      const lines = Object.entries(incoming.headers).map(([name, value]) => `${name}: ${value}`);
      behind.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      behind.write(head);
      behind.pipe(socket).pipe(behind);
    });
    for (const end of [socket, behind]) {
      end.on("error", () => [socket, behind].forEach((each) => each.destroy()));
      end.on("close", () => [socket, behind].forEach((each) => each.destroy()));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const url = `http://127.0.0.1:${server.address().port}`;
  fronts.set(address, url);
  return url;
}
