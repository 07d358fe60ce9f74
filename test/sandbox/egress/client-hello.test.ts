import { once } from "node:events";
import { createServer } from "node:net";
import { connect } from "node:tls";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { serverNameIn } from "../../../src/sandbox/egress/client-hello.ts";

/** The first bytes that Node's TLS sends. */
async function helloFor(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const client = connect({ port, host: "127.0.0.1", servername }).on("error", () => {});
  const [socket] = await once(server, "connection");
  const [bytes] = await once(socket, "data");
  client.destroy();
  socket.destroy();
  return bytes;
}

/** The same message in records of `size` bytes. */
function inRecords(hello: Buffer, size: number): Buffer {
  const message = hello.subarray(5);
  const parts = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    parts.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part);
  }
  return Buffer.concat(parts);
}

test("the server's name is found in a TLS client's message once it has arrived", async () => {
  const hello = await helloFor("api.example.com");
  for (let length = 0; length < hello.length; length++)
    expect(serverNameIn(hello.subarray(0, length))).toBe("more");
  expect(serverNameIn(hello)).toEqual({ name: "api.example.com" });
  expect(serverNameIn(Buffer.concat([hello, Buffer.from("more")]))).toEqual({ name: "api.example.com" });
});

test("it is found even if the message is divided into records", async () => {
  const hello = await helloFor("api.example.com");
  expect(serverNameIn(inRecords(hello, 100))).toEqual({ name: "api.example.com" });
});

test("a message without a server name, or in too many records, has none", async () => {
  expect(serverNameIn(await helloFor(""))).toBe("none");
  expect(serverNameIn(inRecords(await helloFor("api.example.com"), 1))).toBe("none");
});

test("data that is not TLS has none after its first byte", () => {
  for (const text of ["GET / HTTP/1.1\r\n", "SSH-2.0-x", "\0"])
    expect(serverNameIn(Buffer.from(text))).toBe("none");
});

test("a message with a second name has none", async () => {
  const hello = await helloFor("api.example.com");
  const at = hello.indexOf(Buffer.from([0, 0, 0, 20, 0, 18, 0, 0, 15]));
  const extension = hello.subarray(at, at + 24);
  const doubled = Buffer.concat([hello.subarray(0, at), extension, hello.subarray(at)]);
  // The lengths of the record, of the message and of its extensions.
  doubled.writeUInt16BE(hello.readUInt16BE(3) + 24, 3);
  doubled.writeUIntBE(hello.readUIntBE(6, 3) + 24, 6, 3);
  const extensions = 5 + 4 + 34 + 1 + 32 + 2 + hello.readUInt16BE(5 + 4 + 34 + 1 + 32) + 2;
  doubled.writeUInt16BE(hello.readUInt16BE(extensions) + 24, extensions);
  expect(serverNameIn(doubled)).toBe("none");
});

test("random changes to a message never throw, and never produce another name unnoticed", async () => {
  const hello = await helloFor("api.example.com");
  fc.assert(
    fc.property(fc.nat(hello.length - 1), fc.nat(255), (at, byte) => {
      const changed = Buffer.from(hello);
      changed[at] = byte;
      const found = serverNameIn(changed);
      // What the server reads is at the same place.
      if (typeof found === "object") expect(changed.includes(Buffer.from(found.name, "latin1"))).toBe(true);
    }),
  );
  fc.assert(fc.property(fc.uint8Array(), (bytes) => void serverNameIn(Buffer.from([22, 3, 1, ...bytes]))));
});
