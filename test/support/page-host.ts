// A page out of one module, on an origin of its own, as its own server would serve it.

import { once } from "node:events";
import { createServer } from "node:http";
import { build } from "esbuild";
import { onTestFinished } from "vitest";

/** `module` and all that it imports, as one script for the browser. */
export async function bundle(module: URL): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [module.pathname],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    jsx: "automatic",
    // With it, React and the stock front ends report what they find wrong.
    define: { "process.env.NODE_ENV": '"development"' },
  });
  return outputFiles[0]?.text ?? "";
}

/** The origin of a page that is this script. It is served until the test has finished. */
export async function servePage(script: string): Promise<string> {
  const document = `<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>A page</title>
    <body><script type="module" src="/page.js"></script></body>`;
  const server = createServer(({ url }, response) => {
    const [type, body] = url === "/page.js" ? ["text/javascript", script] : ["text/html", document];
    response.writeHead(200, { "content-type": `${type}; charset=utf-8` }).end(body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  return `http://127.0.0.1:${address.port}`;
}
