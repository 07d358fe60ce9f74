import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Backend } from "../../../src/agent/core/backend.ts";
import { hostList } from "../../../src/lib/hosts.ts";
import { execute, refuses } from "../../support/backend.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { ada, bob, configOf, newServer, newWorld, type Server } from "./opened.ts";
import {
  badWays,
  directWays,
  goodWays,
  helloFor,
  type Place,
  PROGRAM,
  REACHED,
  RESOLVED,
} from "./ways-out.ts";

const { signal } = new AbortController();
const closers: (() => unknown)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

/** A server outside, on all addresses of this machine, that says where one is. */
async function outside(onSocket: (socket: Socket) => void = () => {}) {
  const heard: string[] = [];
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (bytes) => {
      heard.push(bytes.toString("latin1"));
      socket.end(
        `HTTP/1.1 200 OK\r\nContent-Length: ${REACHED.length}\r\nConnection: close\r\n\r\n${REACHED}`,
      );
    });
    onSocket(socket);
  });
  await once(server.listen(0, "0.0.0.0"), "listening");
  closers.push(() => server.close());
  return { heard, port: (server.address() as AddressInfo).port };
}

describeWithEngine("a sandbox limited to some hosts", (engine) => {
  let backend: Backend;
  let neighbour: Backend;
  let server: Server;
  let place: Place;
  let allowed: Awaited<ReturnType<typeof outside>>;
  let other: typeof allowed;
  /** Connections to the port of all hosts that are not allowed. */
  let astray = 0;
  const asked: string[] = [];
  const run = (command: string) => execute(backend, command, { timeoutMs: 120_000 });
  const output = async (command: string) => (await run(command)).output;
  const wayFor =
    (seconds: number) =>
    (...args: readonly string[]) =>
      `SECONDS=${seconds} perl way.pl ${args.map((each) => `'${each}'`).join(" ")}`;
  const way = wayFor(20);
  /** For what leads nowhere, and may never end. */
  const shortWay = wayFor(3);
  /** The ways of these that lead somewhere. */
  const leading = async (ways: Readonly<Record<string, string>>) => {
    const names = Object.keys(ways);
    const tries = Object.values(ways).map(
      (line, at) => `(${line}) 2>&1 | grep -aqE '${REACHED}|raw' && echo ${at}`,
    );
    const printed = await output(tries.join("\n"));
    return printed
      .split("\n")
      .filter(Boolean)
      .map((at) => names[Number(at)]);
  };
  const throughProxy = (ways: Readonly<Record<string, readonly string[]>>, ask = way) =>
    leading(Object.fromEntries(Object.entries(ways).map(([name, sent]) => [name, ask("proxy", ...sent)])));
  const configWith = async (hosts: readonly string[], more: object = {}) =>
    configOf(engine, "perl", { network: { allow: hosts }, ...more });

  beforeAll(async () => {
    allowed = await outside();
    other = await outside(() => astray++);
    place = { allowed: allowed.port, other: other.port };
    const { port } = allowed;
    server = newServer(engine, await newWorld(), {
      egress: {
        allow: hostList(
          `allowed.example:${port},some.wild.example:${port},a.b.c.wild.example:${port},bob.example:${port}`,
        ),
        async resolve(host) {
          asked.push(host);
          return RESOLVED[host] ?? ["127.0.0.1"];
        },
      },
    });
    const hosts = [`allowed.example:${port}`, `*.wild.example:${port}`, `*.private.example:${other.port}`];
    [backend, neighbour] = await Promise.all([
      server.pool.get(ada, await configWith(hosts)),
      server.pool.get(bob, await configWith([`bob.example:${port}`])),
    ]);
    for (const each of [backend, neighbour]) await each.write("way.pl", Buffer.from(PROGRAM), signal);
  });

  test("reaches these hosts through its proxy", async () => {
    const ways = goodWays(place);
    expect(await throughProxy(ways)).toEqual(Object.keys(ways));
  });

  test("lets an ordinary program find the proxy by itself, with the credentials of its command", async () => {
    const url = `http://allowed.example:${place.allowed}/`;
    expect(await output(`wget -q -O - ${url}`)).toBe(REACHED);
    const refused = [{ target: "evil.example:80", reason: "host" }];
    expect(await run("wget -q -O - http://evil.example/")).toMatchObject({ exitCode: 1, refused });
  });

  test("cannot reach another host through its proxy, and none of those names is resolved", async () => {
    const before = asked.length;
    const ways = badWays(place, `bob.example:${place.allowed}`);
    expect(Object.keys(ways).length).toBeGreaterThan(80);
    expect(await throughProxy(ways, shortWay)).toEqual([]);
    expect(astray).toBe(0);
    const names = new Set(asked.slice(before));
    for (const name of Object.keys(RESOLVED)) names.delete(name);
    expect([...names]).toEqual(["allowed.example"]);
  });

  test("has no way around its proxy", async () => {
    const own = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
    const gateways = own.filter(({ family }) => family === "IPv4").map(({ address }) => address);
    const ways = directWays(place, gateways.slice(0, 8));
    expect(
      await leading(Object.fromEntries(ways.map((line) => [line, shortWay(...line.split(" "))]))),
    ).toEqual([]);
    expect(astray).toBe(0);
    expect(await output("cut -d: -f1 /proc/net/dev | tail -n +3 | tr -d ' '")).toBe("lo\n");
  });

  test("does not get a neighbour's hosts with the neighbour's credentials", async () => {
    const { output: proxy } = await execute(neighbour, "echo $HTTPS_PROXY");
    const [, user = ""] = /\/\/(\w+):/.exec(proxy) ?? [];
    expect(user).not.toBe("");
    const target = `bob.example:${place.allowed}`;
    const line = `Proxy-Authorization: Basic ${Buffer.from(`${user}:x`).toString("base64")}`;
    const sent = [
      `CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${line}\r\n\r\n`,
      helloFor("bob.example"),
    ];
    const command = way("proxy", ...sent.map((part) => Buffer.from(part as string).toString("hex")));
    expect((await execute(neighbour, command)).output).toContain(REACHED);
    expect(await output(command)).toContain("403 Forbidden");
  });

  test("is not redirected to another host", async () => {
    const target = `allowed.example:${place.allowed}`;
    const request = (url: string, host: string) => `GET ${url} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const sent = request(`http://${target}/`, target) + request("http://evil.example/", "evil.example");
    expect(await output(shortWay("proxy", Buffer.from(sent).toString("hex")))).not.toContain("evil");
    expect(allowed.heard.join("")).not.toContain("evil.example");
  });

  test("reports refused connections for a command", async () => {
    const line = `CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic `;
    const command = `user=$(printf %s "$HTTPS_PROXY" | sed 's,^http://,,; s,@.*,,' | base64 | tr -d '\\n')
      way=$(printf '%s%s\\r\\n\\r\\n' '${line}' "$user" | od -An -vtx1 | tr -d ' \\n')
      SECONDS=20 perl way.pl proxy $way | head -n 1`;
    expect(await run(command)).toMatchObject({
      output: expect.stringContaining("403 Forbidden"),
      refused: [{ target: "evil.example:443", reason: "host" }],
    });
    expect(await run("true")).not.toHaveProperty("refused");
  });

  test("allows a command the additional hosts of its caller, only with its own credentials", async () => {
    const target = `bob.example:${place.allowed}`;
    const sent = (user: string) =>
      [`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${user}\r\n`, helloFor("bob.example")].map((part) =>
        Buffer.from(part as string).toString("hex"),
      );
    const { output: proxy } = await execute(backend, "echo $HTTPS_PROXY", { hosts: [target] });
    const [, user = ""] = /\/\/(\w+:x)@/.exec(proxy) ?? [];
    const with_ = `Proxy-Authorization: Basic ${Buffer.from(user).toString("base64")}\r\n`;
    expect(await output(way("proxy", ...sent(with_)))).toContain(REACHED);
    expect(await output(way("proxy", ...sent("")))).toContain("403 Forbidden");
  });

  test("transfers large data unchanged, in both directions at once", async () => {
    const echo = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {});
      socket.pipe(socket);
    });
    await once(echo.listen(0, "127.0.0.1"), "listening");
    closers.push(() => echo.close());
    const { port } = echo.address() as AddressInfo;
    const { pool } = newServer(engine, await newWorld(), {
      egress: { allow: hostList(`echo.example:${port}`), resolve: async () => ["127.0.0.1"] },
    });
    const own = await pool.get(ada, await configWith([`echo.example:${port}`], { name: "echo" }));
    await own.write("transfer.pl", Buffer.from(TRANSFER), signal);
    const hello = helloFor("echo.example").toString("hex");
    const { output: printed } = await execute(own, `perl transfer.pl echo.example:${port} ${hello}`);
    expect(printed).toMatch(/same\n$/);
  });

  test("works again after its relay was killed", async () => {
    // As the relay's user: the tenant cannot.
    const kill = { Cmd: ["sh", "-c", "kill -s KILL -- -1"], User: "65533:65533" };
    for (const { Id } of await engine.docker.listContainers()) {
      const exec = await engine.docker.getContainer(Id).exec({ ...kill, AttachStdout: true });
      await text(await exec.start({}));
    }
    const ways = goodWays(place);
    await expect.poll(() => throughProxy(ways)).toEqual(Object.keys(ways));
  });

  test("cannot signal the relay from its processes", async () => {
    expect(await output("kill -9 -1; :")).toBe("");
    const ways = goodWays(place);
    await expect.poll(() => throughProxy(ways)).toEqual(Object.keys(ways));
  });

  test("requires an image with Perl, and an error names Perl", async () => {
    const config = await configOf(engine, "busybox", { network: { allow: ["a.example"] }, name: "bare" });
    await refuses(() => server.pool.start(ada, config), "backend_failed", "needs an image with Perl");
  });
});

/** Sends 20 MB through a tunnel and compares what comes back. */
const TRANSFER = String.raw`
use strict;
use Socket qw(:all);
my ($target, $hello) = @ARGV;
my ($port) = $ENV{HTTPS_PROXY} =~ /:(\d+)$/;
socket(my $socket, PF_INET, SOCK_STREAM, 0);
connect($socket, pack_sockaddr_in($port, INADDR_LOOPBACK)) or die;
syswrite $socket, "CONNECT $target HTTP/1.1\r\nHost: $target\r\n\r\n";
sysread $socket, my $head, 4096;
die $head unless $head =~ /^HTTP\/1.1 200/;
my $piece = pack "N*", map { $_ * 2654435761 % 4294967296 } 1 .. 250_000;
my $sent = pack("H*", $hello) . $piece x 20;
unless (fork) {
    for (my $at = 0; $at < length $sent;) { $at += syswrite $socket, $sent, 65536, $at }
    shutdown $socket, 1;
    exit;
}
my $got = "";
1 while sysread $socket, $got, 65536, length $got;
print $got eq $sent ? "same\n" : "differs: " . length($got) . "\n";
`;
