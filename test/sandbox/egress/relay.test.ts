// The other end of a relay belongs to the tenant: here it sends frames that no relay sends.

import type { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { encodeFrame, type FrameField, frameReader } from "../../../src/sandbox/shell/perl/frames.ts";
import { openRelay, type Relay } from "../../../src/sandbox/shell/perl/relay.ts";
import { WINDOW_BYTES } from "../../../src/sandbox/shell/perl/relay-frames.ts";
import type { ChannelEvents } from "../../../src/sandbox/shell/session.ts";

const { signal } = new AbortController();
const GREETING = ["skein-network", "1", "3128"];

/** The other end, as the test plays it. */
async function opened(greeting: readonly string[] = GREETING) {
  let events: ChannelEvents | undefined;
  const connections: Duplex[] = [];
  const got: string[] = [];
  const read = frameReader(
    ({ id, letter, fields }) => void got.push(`${id} ${letter} ${fields.map(String)}`),
  );
  let isScript = true;
  const send = (id: number, letter: string, ...fields: FrameField[]) =>
    events?.onOutput(encodeFrame(id, letter, fields));
  const relay = await openRelay(
    async (its) => {
      events = its;
      return {
        async write(bytes) {
          if (!isScript) return read(Buffer.from(bytes));
          isScript = false;
          send(0, "h", ...greeting);
        },
        ...{ pause() {}, resume() {}, close: () => its.onClose() },
      };
    },
    {
      port: 3128,
      onConnection: (connection) => connections.push(connection.on("error", () => {})),
    },
    signal,
  );
  return { relay, connections, got, send };
}

async function ends(relay: Relay | undefined): Promise<void> {
  expect(relay).toBeDefined();
  await relay?.ended;
}

const bytes = (count: number) => Buffer.alloc(count, 1);

test("data for a connection is read, and more is granted once it is consumed", async () => {
  const { connections, got, send } = await opened();
  send(1, "o");
  send(1, "d", "hello");
  const [connection] = connections;
  expect(String(connection?.read())).toBe("hello");
  await expect.poll(() => got).toContain("1 g 5");
  connection?.end("bye");
  await expect.poll(() => got).toEqual(["1 g 5", "1 d bye", "1 e "]);
});

test("writes wait for grants", async () => {
  const { connections, got, send } = await opened();
  send(1, "o");
  const written = new Promise((resolve) => connections[0]?.write(bytes(WINDOW_BYTES + 1), resolve));
  const sent = () => got.reduce((sum, frame) => sum + (frame.startsWith("1 d ") ? frame.length - 4 : 0), 0);
  await expect.poll(sent).toBe(WINDOW_BYTES);
  send(1, "g", "1");
  await written;
  await expect.poll(sent).toBe(WINDOW_BYTES + 1);
});

const tooMuch = bytes(120 * 1024);

test.each<[name: string, ...frames: [id: number, letter: string, ...fields: FrameField[]][]]>([
  ["an unknown frame", [1, "o"], [1, "q"]],
  ["a connection that exists", [1, "o"], [1, "o"]],
  ["empty data", [1, "o"], [1, "d", ""]],
  ["more than it was granted", [1, "o"], [1, "d", tooMuch], [1, "d", tooMuch], [1, "d", tooMuch]],
  ["a grant of what it never got", [1, "o"], [1, "g", "1"]],
  ["a grant that is no number", [1, "o"], [1, "g", "-1"]],
  ["too many connections", ...Array.from({ length: 200 }, (_, at) => [at + 1, "o"] as [number, string])],
])("a relay that sends %s ends, with all its connections", async (_, ...frames) => {
  const { relay, connections, send } = await opened();
  for (const [id, letter, ...fields] of frames) send(id, letter, ...fields);
  await ends(relay);
  expect(connections.length).toBeLessThan(130);
  expect(connections.every(({ destroyed }) => destroyed)).toBe(true);
});

test.each([
  [["other", "1", "3128"]],
  [["skein-network", "2", "3128"]],
  [["skein-network", "1", "0"]],
  [["skein-network", "1", "99999"]],
  [["skein-network"]],
])("the greeting %j is invalid", async (greeting) => {
  expect((await opened(greeting)).relay).toBeUndefined();
});

test("frames for a closed connection are ignored", async () => {
  const { relay, connections, got, send } = await opened();
  send(1, "o");
  connections[0]?.destroy();
  await expect.poll(() => got).toEqual(["1 x "]);
  send(1, "d", "late");
  send(1, "g", "5");
  send(2, "o");
  expect(connections).toHaveLength(2);
  relay?.close();
  await ends(relay);
});
