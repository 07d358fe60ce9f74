import { once } from "node:events";
import { get } from "node:http";
import { connect, type Socket } from "node:net";
import { pino } from "pino";
import { describe, expect, onTestFinished, test } from "vitest";
import { subscriberNetwork } from "../../../src/lib/hosts.ts";
import { connectionsOf } from "../../../src/server/http/connections.ts";
import { type ServerOptions, startServer } from "../../support/server.ts";

/** Opens connections from `localAddress` that send half a request, until `count` were tried. Returns those left open. */
async function flood(url: string, localAddress: string, count: number): Promise<Socket[]> {
  const { hostname: host, port } = new URL(url);
  const open = new Set<Socket>();
  for (let n = 0; n < count; n++) {
    const socket = connect({ host, port: Number(port), localAddress });
    onTestFinished(() => void socket.destroy());
    socket.on("error", () => {});
    socket.once("close", () => open.delete(socket));
    await once(socket, "connect");
    open.add(socket);
    socket.write("POST /threads/x/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n{");
  }
  return [...open];
}

/** The status of a request from that address, or why there is none. */
const statusFrom = (url: string, localAddress: string) =>
  new Promise<number | string | undefined>((resolve) => {
    const request = get(`${url}/health`, { localAddress, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    request.on("error", (error) => resolve("code" in error ? String(error.code) : error.message));
  });

const serve = (limits: object, more: ServerOptions & { auth?: object } = {}) =>
  startServer({ ...more, config: { limits, ...(more.auth ? { auth: more.auth } : {}) } });

test.each([
  [1024, 768],
  [200, 136],
  [60, 8],
  [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
])("of %s files that a process can open, connections leave enough for its runs: %s", (files, connections) => {
  expect(connectionsOf(files)).toBe(connections);
});

describe("an address that opens connections and sends half a request on each", () => {
  test("leaves connections for other addresses, however many it opens", async () => {
    const lines: string[] = [];
    const logger = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
    const { url } = await serve({ connections: 16 }, { logger });
    const sockets = await flood(url, "127.0.0.2", 60);
    expect(sockets.length).toBeLessThan(60);
    await expect.poll(() => sockets.filter(({ destroyed }) => !destroyed).length).toBe(14);
    expect(await statusFrom(url, "127.0.0.2")).toBe("ECONNRESET");
    expect(await statusFrom(url, "127.0.0.3")).toBe(200);
    expect(await statusFrom(url, "127.0.0.4")).toBe(200);
    const refused = lines.filter((line) => line.includes("connections were refused"));
    expect(refused).toHaveLength(1);
    expect(JSON.parse(refused[0] ?? "")).toMatchObject({ address: "127.0.0.2", most: 16 });
  });

  test("can connect again once it has closed some", async () => {
    const { url } = await serve({ connections: 16 });
    const sockets = await flood(url, "127.0.0.2", 20);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => statusFrom(url, "127.0.0.2")).toBe(200);
  });

  test("has no more than connections_per_address", async () => {
    const { url } = await serve({ connections: 100, connections_per_address: 3 });
    const sockets = await flood(url, "127.0.0.2", 10);
    await expect.poll(() => sockets.filter(({ destroyed }) => !destroyed).length).toBe(3);
    expect(await statusFrom(url, "127.0.0.3")).toBe(200);
  });

  test("can have all of them if it is a trusted gateway", async () => {
    const auth = { scheme: "header", trusted_proxies: ["127.0.0.2"] };
    const { url } = await serve({ connections: 16, connections_per_address: 3 }, { auth });
    const sockets = await flood(url, "127.0.0.2", 16);
    expect(await statusFrom(url, "127.0.0.2")).toBe("ECONNRESET");
    expect(sockets.filter(({ destroyed }) => !destroyed)).toHaveLength(16);
  });
});

test.each([
  ["10.0.0.5", "10.0.0.5"],
  ["::ffff:10.0.0.5", "10.0.0.5"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
  ["2001:db8:1:2::", "2001:db8:1:2::/64"],
  ["::1", "0:0:0:0::/64"],
])("%s counts as a connection of %s", (address, network) => expect(subscriberNetwork(address)).toBe(network));
