// Serves the page in this folder, and forwards all other requests to a Skein server. The page and the API have one origin, so the
// browser needs no CORS. The page imports the built client.
//
// Run it:   npm start                                              (in another terminal)
//           npx node examples/browser/main.ts                      and open http://127.0.0.1:3000
// Test it:  npm test -- test/examples/browser.test.ts

import { createReadStream } from "node:fs";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { pipeline } from "node:stream";

/** The path of a file of the client, or of the protocol that it shares with the server. */
const CLIENT = /^\/(?:client|protocol)\/[a-z-]+\.js$/;

function fileAt(address: string): readonly [file: string, type: string] | undefined {
  if (address === "/") return ["index.html", "text/html; charset=utf-8"];
  return CLIENT.test(address) ? [`../../dist${address}`, "text/javascript"] : undefined;
}

/** Creates the server, which does not listen yet. */
export function app(skein: URL): Server {
  return createServer((incoming, response) => {
    const found = fileAt(incoming.url ?? "");
    if (!found) return forward(skein, incoming, response);
    const [file, type] = found;
    response.setHeader("content-type", type);
    pipeline(createReadStream(new URL(file, import.meta.url)), response, () => {});
  });
}

/**
 * Streams in both directions. Keeps the browser's `Host` header, because Skein refuses names other than this machine's.
 */
function forward(skein: URL, incoming: IncomingMessage, response: ServerResponse): void {
  const { method = "GET", url = "/", headers } = incoming;
  const onward = request(skein, { path: url, method, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    pipeline(answer, response, () => {});
  });
  onward.on("error", () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
  response.on("close", () => onward.destroy());
  pipeline(incoming, onward, () => {});
}

if (import.meta.main) {
  const skein = new URL(process.env.SKEIN_URL ?? "http://127.0.0.1:8000");
  const port = Number(process.env.PORT ?? 3000);
  app(skein).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}`));
}
