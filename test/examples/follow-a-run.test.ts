import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { followARun } from "../../examples/follow-a-run/main.ts";
import { serve } from "../support/process.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { program } from "./program.ts";

const SCRIPT = `
- say: ${"Let me think about it in many words. ".repeat(20)}
  call: [{ tool: write_todos, args: { todos: [{ id: "1", title: Think, status: done }] } }]
- say: I am through.
`;

/** Follows a run to its end; returns what was printed. */
async function printed(url: string, thread: string): Promise<string> {
  let text = "";
  const print = (more: string) => {
    text += more;
  };
  const last = await followARun({ url, thread, input: "Think.", print });
  expect(last).toMatchObject({ event: "done", data: { status: "success" } });
  return text;
}

/** A way to the server that breaks each time so many bytes of an answer have passed. */
async function brittle(url: string, bytes: number): Promise<{ url: string; connections: () => number }> {
  const { hostname, port } = new URL(url);
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((near) => {
    connections++;
    let left = bytes;
    const far = connect(Number(port), hostname);
    const cut = () => {
      near.destroy();
      far.destroy();
    };
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", cut).on("close", cut);
    }
    near.on("data", (chunk) => far.write(chunk));
    far.on("data", (chunk) => {
      near.write(chunk.subarray(0, left), () => left <= 0 && cut());
      left -= chunk.length;
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address() as AddressInfo; // of a port that is listened on
  return { url: `http://127.0.0.1:${address.port}`, connections: () => connections };
}

test("prints the same whether the connection holds or breaks repeatedly", async () => {
  const { url } = await serve(await temporaryFolder(), SCRIPT, { STORE: "memory" });
  const whole = await printed(url, "t1");
  expect(whole).toContain("✓ write_todos\n");
  expect(whole).toMatch(/I am through\.\n\(success: \d+ tokens\)\n$/);
  const way = await brittle(url, 8000);
  expect(await printed(way.url, "t2")).toBe(whole);
  expect(way.connections()).toBeGreaterThan(2);
});

test("stops the run itself when asked to stop", async () => {
  const { url } = await startServer({ script: [{ say: "This takes long.", delay_ms: 600_000 }] });
  const stop = new AbortController();
  const options = { url, thread: "t1", input: "Go.", print: () => {}, signal: stop.signal };
  const run = followARun(options);
  stop.abort();
  expect(await run).toMatchObject({ event: "done", data: { status: "cancelled" } });
});

test("is a program that prints a run and exits with 0", async () => {
  const { url } = await startServer({ script: [{ say: "Hello from a script." }] });
  const { code, output } = await program("follow-a-run/main.ts", ["Hi"], { SKEIN_URL: url });
  expect(output).toMatch(/^Hello from a script\.\n\(success: \d+ tokens\)\n$/);
  expect(code).toBe(0);
});

test("prints the server's refusal and exits with 1", async () => {
  const { url } = await startServer();
  const env = { SKEIN_URL: url, THREAD: "no such id" };
  const { code, output } = await program("follow-a-run/main.ts", [], env);
  expect(output).toMatch(/^invalid_request: /);
  expect(code).toBe(1);
});
