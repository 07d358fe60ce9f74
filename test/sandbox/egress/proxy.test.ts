import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { createServer as createHttpsServer, get } from "node:https";
import { connect, createServer, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { hostList } from "../../../src/lib/hosts.ts";
import { allowing } from "../../../src/sandbox/egress/allowed-hosts.ts";
import type { DialOptions } from "../../../src/sandbox/egress/dial.ts";
import { egressProxy } from "../../../src/sandbox/egress/proxy.ts";
import { newCertificates } from "../../support/certificates.ts";
import { httpServer, tcpServer } from "../../support/hostile.ts";
import { helloFor } from "../docker/ways-out.ts";

/** A proxy on a port, until the test is over, and what it refused. */
async function proxyFor(hosts: readonly string[], options: DialOptions = {}) {
  const refused: string[] = [];
  const closing = new AbortController();
  const serve = egressProxy({
    resolve: async () => ["127.0.0.1"],
    ...options,
    passOf: (user) => ({
      allows: allowing(user === "trusted" ? [...hosts, "*:1"] : hosts),
      onRefused: (target, reason) => void refused.push(`${target} ${reason}`),
    }),
    signal: closing.signal,
  });
  const server = createServer({ allowHalfOpen: true }, serve).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    closing.abort();
    server.close();
  });
  return { port: (server.address() as { port: number }).port, refused, close: () => closing.abort() };
}

const allowed = (target: string) => ({ allow: hostList(target) });

/** A tunnel to `target`, or the status of the refusal. */
async function tunnel(port: number, target: string): Promise<Socket | number> {
  const asked = request({
    port,
    host: "127.0.0.1",
    method: "CONNECT",
    path: target,
    headers: { host: target },
  }).end();
  const [answer, socket] = await once(asked, "connect");
  socket.on("error", () => {});
  onTestFinished(() => socket.destroy());
  return answer.statusCode === 200 ? socket : answer.statusCode;
}

/** All that the proxy answers to these bytes. */
async function answerTo(port: number, sent: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.write(sent);
  return text(socket);
}

test("HTTPS goes through an end-to-end tunnel", async () => {
  const { server: files } = await newCertificates(onTestFinished);
  const [cert, key] = await Promise.all([readFile(files.cert), readFile(files.key)]);
  const server = createHttpsServer({ cert, key }, (_, answer) => answer.end("hello".repeat(100_000))).listen(
    0,
  );
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const target = `api.example:${(server.address() as { port: number }).port}`;
  const proxy = await proxyFor([target], allowed(target));
  const socket = (await tunnel(proxy.port, target)) as Socket;
  const [answer] = await once(
    get({
      host: "api.example",
      createConnection: () => connectTls({ socket, servername: "api.example", rejectUnauthorized: false }),
    }),
    "response",
  );
  expect(await text(answer)).toBe("hello".repeat(100_000));
  expect(proxy.refused).toEqual([]);
});

test("TLS for another server ends with an explanatory alert, and none of it leaves", async () => {
  const heard: Buffer[] = [];
  const server = await tcpServer((socket) => socket.on("data", (bytes) => heard.push(bytes)));
  const target = `api.example:${server.port}`;
  const proxy = await proxyFor([target], allowed(target));
  const socket = (await tunnel(proxy.port, target)) as Socket;
  const client = connectTls({ socket, servername: "evil.example" });
  const [error] = await once(client, "error");
  expect(error.message).toMatch(/unrecognized name/);
  expect(proxy.refused).toEqual([`${target} name`]);
  expect(heard).toEqual([]);
});

test("a plain request arrives as it was sent, without the part for the proxy", async () => {
  const server = await httpServer((_, answer) => answer.writeHead(201, { "x-answer": "yes" }).end("made"));
  const target = `api.example:${server.port}`;
  const proxy = await proxyFor([target], allowed(target));
  const answer = await answerTo(
    proxy.port,
    `PUT http://${target}/a/b?c=d HTTP/1.1\r\nHost: ${target}\r\nX-Own: 1\r\nProxy-Authorization: Basic eDp4\r\nProxy-Connection: keep-alive\r\nContent-Length: 4\r\n\r\nbody`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 201 Created\r\n.*x-answer: yes\r\n.*made/is);
  expect(server.heard).toMatchObject([
    {
      method: "PUT",
      path: "/a/b?c=d",
      body: "body",
      headers: { host: target, "x-own": "1", connection: "close" },
    },
  ]);
  expect(server.heard[0]?.headers).not.toHaveProperty("proxy-authorization");
});

test.each([
  ["a status that Node does not write", "HTTP/1.1 099 X", 502],
  ["a status without a meaning", "HTTP/1.1 999 X", 999],
  ["a reason with a control character", "HTTP/1.1 200 \x01", 200],
])("%s affects only its own request", async (_, head, status) => {
  const server = await tcpServer((socket) => {
    socket.once("data", () => socket.end(`${head}\r\nContent-Length: 0\r\n\r\n`));
  });
  const target = `api.example:${server.port}`;
  const proxy = await proxyFor([target], allowed(target));
  const asked = `GET http://${target}/ HTTP/1.1\r\nHost: ${target}\r\n\r\n`;
  for (let again = 0; again < 2; again++)
    expect(await answerTo(proxy.port, asked)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
});

test("further requests on a connection are refused, and connect to no host", async () => {
  const server = await httpServer((_, answer) => answer.end("once"));
  const target = `api.example:${server.port}`;
  const proxy = await proxyFor([target], allowed(target));
  const asked = `GET http://${target}/ HTTP/1.1\r\nHost: ${target}\r\n\r\n`;
  await answerTo(proxy.port, asked.repeat(20));
  expect(server.heard).toHaveLength(1);
});

test("a redirect is passed on and not followed", async () => {
  const server = await httpServer((_, answer) =>
    answer.writeHead(302, { location: "http://evil.example/" }).end(),
  );
  const target = `api.example:${server.port}`;
  const proxy = await proxyFor([target], allowed(target));
  const asked = (url: string, host: string) =>
    answerTo(proxy.port, `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  expect(await asked(`http://${target}/`, target)).toMatch(
    /^HTTP\/1\.1 302 .*location: http:\/\/evil\.example\//is,
  );
  expect(await asked("http://evil.example/", "evil.example")).toMatch(/^HTTP\/1\.1 403 /);
  expect(proxy.refused).toEqual(["evil.example:80 host"]);
});

test("an allowed host with a private address is not connected to, and a name is resolved once per connection", async () => {
  let connections = 0;
  const server = await tcpServer(() => connections++);
  const target = `api.example:${server.port}`;
  const asked: string[] = [];
  const answers = [
    ["203.0.113.7", "127.0.0.1"],
    ["127.0.0.1"],
    ["10.0.0.1"],
    ["169.254.169.254"],
    ["::ffff:127.0.0.1"],
  ];
  const proxy = await proxyFor([target], {
    async resolve(host) {
      asked.push(host);
      return answers[asked.length - 1] ?? [];
    },
  });
  for (const _ of answers) expect(await tunnel(proxy.port, target)).toBe(403);
  expect(asked).toHaveLength(answers.length);
  expect(await tunnel(proxy.port, target)).toBe(502);
  expect(proxy.refused).toEqual(answers.map(() => `${target} address`));
  expect(connections).toBe(0);
});

test("a plain request is refused unless its one Host is the host of its URL", async () => {
  const server = await httpServer((_, answer) => answer.end("reached"));
  const target = `api.example:${server.port}`;
  const proxy = await proxyFor([target], allowed(target));
  for (const hosts of ["Host: evil.example", "Host: api.example", `Host: ${target}\r\nHost: evil.example`])
    expect(await answerTo(proxy.port, `GET http://${target}/ HTTP/1.1\r\n${hosts}\r\n\r\n`)).toMatch(
      /^HTTP\/1\.1 40[03] /,
    );
  expect(proxy.refused).toContain(`${target} name`);
  expect(server.heard).toEqual([]);
});

test("a host that is not allowed is not even resolved", async () => {
  const asked: string[] = [];
  const proxy = await proxyFor(["api.example"], {
    async resolve(host) {
      asked.push(host);
      return ["127.0.0.1"];
    },
  });
  expect(await tunnel(proxy.port, "secret-in-a-name.evil.example:443")).toBe(403);
  expect(
    await answerTo(proxy.port, "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n"),
  ).toMatch(/403/);
  expect(asked).toEqual([]);
});

test("the text of a refusal is short and has no control characters", async () => {
  const proxy = await proxyFor(["api.example"]);
  await answerTo(proxy.port, `CONNECT ${"a".repeat(1000)}\x1b[31m:443 HTTP/1.1\r\n\r\n`);
  await answerTo(proxy.port, `CONNECT [::1]:443 HTTP/1.1\r\nHost: x\r\n\r\n`);
  expect(proxy.refused.at(-1)).toBe("[::1]:443 host");
  for (const each of proxy.refused) expect(each).toMatch(/^[\x20-\x7e]{1,310}$/);
});

test("a tunnel ends at both ends when either closes, or with the proxy", async () => {
  const ended: Promise<unknown>[] = [];
  const arrived = Promise.withResolvers<unknown>();
  const server = await tcpServer((socket) => ended.push(once(socket.on("data", arrived.resolve), "close")));
  const target = `api.example:${server.port}`;
  const proxy = await proxyFor([target], allowed(target));
  const first = (await tunnel(proxy.port, target)) as Socket;
  const second = (await tunnel(proxy.port, target)) as Socket;
  await expect.poll(() => ended.length).toBe(2);
  first.destroy();
  await ended[0];
  // From then on no time limit ends it.
  second.write(helloFor("api.example"));
  await arrived.promise;
  proxy.close();
  await Promise.all([ended[1], once(second.resume(), "close")]);
});
