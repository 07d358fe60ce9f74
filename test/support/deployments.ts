// Deployments to run the tests of a wire against, beside the server in memory: as small and as large as operators have them.

import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { onTestFinished } from "vitest";
import { scriptedModel } from "../../src/agent/models/scripted.ts";
import { type Deploy, type ServerOptions, startOne, type TestServer, temporaryFolder } from "./server.ts";
import type { SharedStore } from "./shared-stores.ts";

/** One server on SQLite. */
export const onSqlite: Deploy = (options) =>
  startOne({ ...options, config: { store: "sqlite", ...options.config } });

export interface Replicas extends TestServer {
  /** Cuts each of the next event streams after so many bytes. */
  cut(how: Cut, streams: { readonly number: number; readonly bytes: number }): void;
  /** How many it has cut. */
  cuts(): number;
}

/** The connection breaks, or the stream ends as if it were whole. */
export type Cut = "reset" | "end";

/** A test that names its store gets one server with it. */
export const unlessStored =
  (deploy: Deploy): Deploy =>
  (options) =>
    "store" in (options.config ?? {}) ? startOne(options) : deploy(options);

/** Two replicas on one store, behind a balancer that sends every request to the other one. */
export function onReplicas({ kind, database }: Pick<SharedStore, "kind" | "database">) {
  return async (options: ServerOptions): Promise<Replicas> => {
    const config = { store: kind, [kind]: { url: await database() }, ...options.config };
    // They play one script, and the workspaces of local backends are on one disk.
    const model = options.model ?? scriptedModel(options.script ?? [{ say: "ok" }]);
    const dir = options.dir ?? (await temporaryFolder());
    const start = () => startOne({ ...options, model, dir, config });
    const [one, other] = [await start(), await start()];
    const balancer = await alternating([one.url, other.url]);
    onTestFinished(() => balancer.close());
    const close = async () => {
      await Promise.all([one.app.close(), other.app.close()]);
    };
    return { ...balancer, dir, app: { ...one.app, close } };
  };
}

interface Balancer extends Pick<Replicas, "url" | "cut" | "cuts"> {
  close(): Promise<void>;
}

/** What breaks on one side breaks on the other. */
async function alternating(urls: readonly string[]): Promise<Balancer> {
  let requests = 0;
  let cuts = 0;
  let next = { how: "reset" as Cut, number: 0, bytes: 0 };
  const shorten = (answer: IncomingMessage, reply: ServerResponse) => {
    const { how, bytes } = next;
    next = { ...next, number: next.number - 1 };
    let left = bytes;
    answer.on("data", (chunk: Buffer) => {
      if (left <= 0) return;
      const isLast = chunk.length >= left;
      // What came before the cut arrives.
      const cut = () => void (how === "end" ? reply.end() : reply.destroy());
      reply.write(chunk.subarray(0, left), isLast ? cut : undefined);
      left -= chunk.length;
      if (isLast) cuts++;
    });
    answer.on("end", () => reply.end());
  };
  const pass = (incoming: IncomingMessage, reply: ServerResponse) => {
    const base = urls[requests++ % urls.length] ?? "";
    const { method, headers, url = "/" } = incoming;
    const outgoing = request(new URL(url, base), { method, headers, agent: false }, (answer) => {
      reply.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on("error", () => reply.destroy());
      const isStream = answer.headers["content-type"]?.startsWith("text/event-stream");
      if (isStream && next.number > 0) shorten(answer, reply);
      else answer.pipe(reply);
    });
    outgoing.on("error", () => reply.destroy());
    reply.on("close", () => outgoing.destroy());
    incoming.pipe(outgoing);
  };
  const server = createServer(pass).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || !address) throw new Error("A server that listens has an address.");
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut(how, streams) {
      next = { how, ...streams };
    },
    cuts: () => cuts,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
