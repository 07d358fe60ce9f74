import { once } from "node:events";
import { connect } from "node:net";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { startServer } from "../../support/server.ts";

const MIB = 1024 * 1024;
/** Several times what the kernel holds for a connection. */
const WORD = "é".repeat(6 * MIB);

const headersOf = (tenant: string) => ({
  "x-skein-tenant": tenant,
  "x-skein-user": "ada",
  "x-skein-scopes": "read run",
});

/** A run of each tenant has said one long word on its thread `t`. */
async function serve(unread_bytes: number) {
  const lines: string[] = [];
  const { url } = await startServer({
    agents: "agents: { assistant: { model: 'scripted:test' } }",
    script: [{ say: WORD }, { say: WORD }],
    logger: pino({ level: "warn" }, { write: (line: string) => void lines.push(line) }),
    config: {
      auth: { scheme: "header", trusted_proxies: ["127.0.0.0/8"] },
      limits: { unread_bytes },
      streams: { stall: "1h" },
    },
  });
  const ids: Record<string, string> = {};
  for (const tenant of ["flood", "other"]) {
    const response = await fetch(`${url}/threads/t/runs`, {
      method: "POST",
      headers: { ...headersOf(tenant), "content-type": "application/json", accept: "application/json" },
      body: JSON.stringify({ input: "go" }),
    });
    ids[tenant] = ((await response.json()) as { id: string }).id;
  }
  const pathOf = (what: string, tenant: string) =>
    what === "messages" ? "/threads/t/messages" : `/threads/t/runs/${ids[tenant]}/events`;
  return { url, pathOf, lines };
}

/** Asks on a connection of its own, and reads nothing but the beginning of the answer. `rest` reads on, and counts bytes. */
async function ignoring(url: string, path: string, tenant: string) {
  const { port, host } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  const head = Object.entries({ host, ...headersOf(tenant) }).map((pair) => pair.join(": "));
  socket.write(`GET ${path} HTTP/1.0\r\n${head.join("\r\n")}\r\n\r\n`);
  const [beginning] = (await once(socket, "data")) as [Buffer];
  socket.pause();
  const rest = async () => {
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => {
      bytes += chunk.length;
    });
    const closed = once(socket, "close");
    socket.resume();
    await closed;
    return bytes;
  };
  return { beginning: beginning.toString(), rest };
}

describe.each(["messages", "events"])("%s that clients do not read", (what) => {
  test("are limited in total: the longest stalled are cut off, and others are read", async () => {
    // Two such answers fit, and a part of a third one.
    const { url, pathOf, lines } = await serve(30 * MIB);
    const first = await ignoring(url, pathOf(what, "flood"), "flood");
    // The kernel takes more of them as time goes by, which makes room for another.
    const flood = async () => {
      await ignoring(url, pathOf(what, "flood"), "flood");
      return lines.join("");
    };
    await expect.poll(flood, { interval: 200 }).toContain("responses were cut");
    const read = async () => {
      const answer = await fetch(url + pathOf(what, "other"), { headers: headersOf("other") });
      return (await answer.text()).includes(WORD);
    };
    await expect.poll(read, { interval: 200 }).toBe(true);
    expect(lines.join("")).toContain('"tenant":"flood"');
    expect(lines.join("")).not.toContain('"tenant":"other"');
    expect(await first.rest()).toBeLessThan(Buffer.byteLength(WORD));
  });
});

test("a long response above the limit is refused with the limit and the retry time, until a stalled one is cut off", async () => {
  const { url, pathOf } = await serve(MIB);
  const path = pathOf("messages", "flood");
  expect((await ignoring(url, path, "flood")).beginning).toMatch(/^HTTP\/1.1 200 /);
  // A response that has stood still for a second makes room for another one, so a slow machine asks again.
  let refusal = "";
  const again = async () => {
    refusal = (await ignoring(url, path, "flood")).beginning;
    return refusal;
  };
  await expect.poll(again, { interval: 0 }).toMatch(/^HTTP\/1.1 503 /);
  expect(refusal).toMatch(/retry-after: 5/i);
  expect(refusal).toContain('"code":"unavailable"');
  expect(refusal).toContain(`"details":{"limit":"limits.unread_bytes","most":${MIB}`);
  await expect.poll(again).toMatch(/^HTTP\/1.1 200 /);
});
