// The client as it is built, where the newest parts of the language are missing: Node 18, and pages on plain http.

import { fileURLToPath } from "node:url";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import { expect, test } from "vitest";
import { startServer } from "../support/server.ts";

const CLIENT = fileURLToPath(new URL("../../dist/client/client.js", import.meta.url));

/** What Node 18 does not have, or not in its first versions. */
const MISSING = `
  for (const name of ["withResolvers", "try"]) delete Promise[name];
  for (const name of ["toSorted", "toReversed", "toSpliced", "with"]) delete Array.prototype[name];
  for (const name of ["toBase64", "toHex"]) delete Uint8Array.prototype[name];
  for (const name of ["isWellFormed", "toWellFormed"]) delete String.prototype[name];
  delete Array.fromAsync;
  delete Object.groupBy;
  delete Map.groupBy;
  delete Uint8Array.fromBase64;
  delete globalThis.Iterator;
`;

const TALK = `(async () => {
  const said = [];
  const { createClient, partOf, blobOf } = skein;
  const client = createClient({ baseUrl });
  const onStarted = (id) => said.push(typeof id);
  for await (const event of client.run("t1", { input: "go" }, undefined, { onStarted }))
    if (event.event === "done") said.push("run");
  const [{ id: first }] = (await client.runs.of("t1")).items;
  let after;
  for await (const _ of client.runs.events("t1", first, { onCursor: (cursor) => (after = cursor) }));
  const content = [await partOf(new Blob(["x"], { type: "text/plain" }))];
  said.push(await blobOf(content[0]).text());
  await client.start("t1", { messages: [{ role: "user", content }] });
  const leaving = new AbortController();
  try {
    for await (const event of client.follow("t1", { after }, leaving.signal))
      if (event.event === "done") leaving.abort(new Error("followed"));
  } catch (error) {
    said.push(error.message);
  }
  await client.files.write("a.txt", new Uint8Array([104, 105]));
  said.push(await (await client.files.read("a.txt")).text());
  said.push((await client.threads.list({ limit: 1 })).items.length);
  return said;
})()`;

/** What a browser has besides the language, without `AbortSignal.any`. */
const platform = {
  ...{ fetch, Request, Headers, Blob, TextDecoder, TextEncoder, AbortController, setTimeout, clearTimeout },
  ...{ atob, btoa, URLSearchParams },
};

test.each([
  ["Node 18 has no global crypto", {}],
  [
    "a page on plain http has no crypto.randomUUID",
    { crypto: { getRandomValues: crypto.getRandomValues.bind(crypto) } },
  ],
])("the client works where %s", async (_, more) => {
  const { url: baseUrl } = await startServer({ script: () => ({ say: "Hello." }) });
  const bundled = await build({
    ...{ entryPoints: [CLIENT], bundle: true, write: false, format: "iife", globalName: "skein" },
    ...{ logLevel: "error" },
  });
  const context = createContext({ ...platform, ...more, baseUrl });
  runInContext(MISSING + (bundled.outputFiles[0]?.text ?? ""), context);
  expect([...(await runInContext(TALK, context))]).toEqual(["string", "run", "x", "followed", "hi", 1]);
});
