import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { frameChannel } from "../../src/sandbox/docker/open-sandbox.ts";

const server = createServer();
beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => void server.close());

/** The channel, the other side of its stream, and all that it has told. */
async function opened() {
  // A server that listens on a port has such an address.
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection");
  const stream = connect(port, "127.0.0.1");
  const [engine]: Socket[] = await accepted;
  if (!engine) throw new Error("not connected");
  const told = { output: "", errors: "", closed: [] as (Error | undefined)[] };
  const channel = frameChannel(stream, {
    onOutput: (bytes) => {
      told.output += bytes.toString("latin1");
    },
    onErrorOutput: (bytes) => {
      told.errors += bytes.toString("latin1");
    },
    onClose: (error) => told.closed.push(error),
  });
  return { channel, stream, engine, told };
}

function frame(kind: number, text: string): Buffer {
  const header = Buffer.from([kind, 0, 0, 0, 0, 0, 0, 0]);
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

test("separates output from error output, wherever the frames are split", async () => {
  const bytes = Buffer.concat([
    ...[frame(1, "one"), frame(2, "oops"), frame(1, ""), frame(1, "\x01\0\0\0two"), frame(2, "!")],
  ]);
  for (let at = 0; at <= bytes.length; at++) {
    const { stream, engine, told } = await opened();
    stream.emit("data", bytes.subarray(0, at));
    stream.emit("data", bytes.subarray(at));
    expect([told.output, told.errors]).toEqual(["one\x01\0\0\0two", "oops!"]);
    engine.destroy();
  }
});

test("passes on written bytes, and reports its end once, by either side", async () => {
  const { channel, engine, told } = await opened();
  const received = once(engine, "data");
  await channel.write(Buffer.from("echo"));
  expect(String((await received)[0])).toBe("echo");
  engine.end(frame(1, "bye"));
  await expect.poll(() => told.closed).toEqual([undefined]);
  expect(told.output).toBe("bye");
  await expect(channel.write(Buffer.from("late"))).rejects.toThrow();

  const other = await opened();
  const ended = once(other.engine, "close");
  other.channel.close();
  await ended;
  await expect.poll(() => other.told.closed).toEqual([undefined]);
});

test("is closed with the reason when the stream breaks or contains a malformed frame", async () => {
  const broken = await opened();
  broken.engine.resetAndDestroy();
  await expect.poll(() => broken.told.closed[0]).toMatchObject({ code: "ECONNRESET" });

  const { engine, told } = await opened();
  engine.write("HTTP/1.1 500 Oops");
  await expect.poll(() => told.closed[0]?.message).toContain("malformed frame");
  expect(told).toMatchObject({ output: "", errors: "" });
});

test("blocks the writer while it is paused", async () => {
  const { channel, engine, told } = await opened();
  channel.pause();
  for (let count = 0; count < 64; count++) engine.write(frame(1, "x".repeat(524_288)));
  for (let last = -1, same = 0; same < 100; last = engine.writableLength) {
    await nextTurn();
    same = engine.writableLength === last ? same + 1 : 0;
  }
  expect(engine.writableLength).toBeGreaterThan(0);
  expect(told.output).toBe("");
  channel.resume();
  await expect.poll(() => told.output.length).toBe(64 * 524_288);
  channel.close();
});
