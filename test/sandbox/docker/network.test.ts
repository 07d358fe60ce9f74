import { type ChildProcessWithoutNullStreams, execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type Docker from "dockerode";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { connect } from "../../../src/sandbox/docker/engine.ts";
import { networks } from "../../../src/sandbox/docker/network.ts";
import { refuses } from "../../support/backend.ts";
import { describeWithEngine, describeWithOwnEngine, type Engine } from "../../support/engine.ts";

const execute = promisify(execFile);
const run = async (line: string) => (await execute("sh", ["-ec", line])).stdout;
const { signal } = new AbortController();
const logger = { info() {}, warn() {}, error() {} };
const newName = () => `test-${randomBytes(4).toString("hex")}`;

/** Networks of a deployment; that for `bridge` is removed at the end of the test. */
function opened({ host }: Engine, firewall: "managed" | "operator" = "managed", deployment = newName()) {
  const made = networks(connect({ host }), { deployment, mark: deployment, firewall, logger });
  onTestFinished(() => made.remove(signal));
  return made;
}

/** A network of the operator's, until the test is over. */
async function network({ docker }: Engine, options: object = {}): Promise<string> {
  const Name = newName();
  const made = await docker.createNetwork({ Name, Driver: "bridge", ...options });
  onTestFinished(() => made.remove());
  return Name;
}

/** One that runs until the test, or the file, is over. */
async function container({ docker, image }: Engine, network: string, command: string, more: object = {}) {
  const made = await docker.createContainer({
    Image: await image("busybox"),
    Cmd: ["sh", "-c", command],
    ExposedPorts: { "80/tcp": {} },
    HostConfig: { NetworkMode: network, Init: true, ...more },
  });
  await made.start();
  return made;
}

/** One that serves on port 80, and its address. */
async function server(found: Engine, network: string, more?: object) {
  const made = await container(found, network, SERVE, more);
  await answers(made, `until ${ASK} 127.0.0.1 80 | grep -q reached; do sleep 0.02; done`);
  const { NetworkSettings } = await made.inspect();
  return { made, address: Object.values(NetworkSettings.Networks)[0]?.IPAddress };
}

async function answers(made: Docker.Container, command: string): Promise<string> {
  // With a terminal, so that the engine sends what is printed and nothing else.
  const exec = await made.exec({
    Cmd: ["sh", "-c", command],
    Tty: true,
    AttachStdout: true,
    AttachStderr: true,
  });
  return (await text(await exec.start({ Tty: true }))).replaceAll("\r", "");
}

/** The one that engines ask for their containers. */
const [resolver = "8.8.8.8"] = [
  ...readFileSync("/etc/resolv.conf", "utf8").matchAll(/^nameserver (\d[\d.]+)$/gm),
]
  .map(([, address = ""]) => address)
  .filter((address) => !address.startsWith("127."));
const isPrivate = /^(10|172\.(1[6-9]|2\d|3[01])|192\.168)\./.test(resolver);

const SERVE = "echo reached > /index.html; exec httpd -f -h / -p 80";
const ASK = "printf 'GET / HTTP/1.0\r\n\r\n' | nc -w 2";
const SHUT = { Internal: true, Options: { "com.docker.network.bridge.inhibit_ipv4": "true" } };

describeWithEngine("the network of a sandbox, on any engine", (found) => {
  test("is none by default", async () => {
    expect(await opened(found).prepare("none", signal)).toBe("none");
  });

  test("can be an internal one that is isolated from the engine's machine", async () => {
    const name = await network(found, SHUT);
    const { Id } = await found.docker.getNetwork(name).inspect();
    expect(await opened(found).prepare(name, signal)).toBe(Id);
  });

  test("cannot be one that leads outside, to the engine's machine, or nowhere", async () => {
    const { prepare } = opened(found);
    const out = await network(found);
    await refuses(() => prepare(out, signal), "backend_refused", "Use `bridge` for the internet");
    const inside = await network(found, { Internal: true });
    const remedy = `docker network create --internal -o com.docker.network.bridge.inhibit_ipv4=true ${inside}`;
    await refuses(() => prepare(inside, signal), "backend_refused", remedy);
    for (const name of ["host", "default", "gone"])
      await refuses(() => prepare(name, signal), "backend_refused", `The network \`${name}\``);
  });

  test("can lead to the engine's machine if the operator takes responsibility, but not outside", async () => {
    const { prepare } = opened(found, "operator");
    expect(await prepare(await network(found, { Internal: true }), signal)).toMatch(/^[0-9a-f]{64}$/);
    const out = await network(found);
    await refuses(() => prepare(out, signal), "backend_refused", "is not internal");
  });
});

describeWithOwnEngine("a sandbox's reach, on a machine where the server is root", (found) => {
  /** By what a sandbox calls them. */
  const PLACES: Readonly<Record<string, string>> = {
    "the internet": "203.0.113.7 80",
    "a private address": "10.1.2.3 80",
    ...(isPrivate ? { "other ports of the resolver": `${resolver} 80` } : {}),
    "a metadata service": "169.254.169.254 80",
    "a neighbour of the host": "198.51.100.2 80",
    "the host": "gateway 8080",
    "the host by another address": "198.51.100.1 8080",
    "a metadata service on the host": "169.254.170.2 8080",
    "what a container publishes": "198.51.100.1 8088",
    "what a container publishes, by the gateway": "gateway 8088",
  };

  beforeAll(async () => {
    const internet = await startInternet();
    const { pid } = internet;
    await run(`
      ip link add uplink type veth peer name downlink netns ${pid}
      ip addr add 198.51.100.1/30 dev uplink && ip link set uplink up
      ip addr add 169.254.170.2/32 dev lo
      there() { nsenter --net=/proc/${pid}/ns/net "$@"; }
      there ip link set lo up
      there ip addr add 198.51.100.2/30 dev downlink && there ip link set downlink up
      for each in 203.0.113.7 10.1.2.3 169.254.169.254 ${resolver}; do there ip addr add $each/32 dev lo; done
      ip route add default via 198.51.100.2
      there ip route add default via 198.51.100.1
    `);
    internet.stdin.write(`${resolver}\n`);
    await once(internet.stdout, "data");
    const service = createServer((socket) => socket.on("error", () => {}).end("reached\n"));
    await once(service.listen(8080), "listening");
    await found.docker.createNetwork({ Name: "other", Driver: "bridge" });
    await server(found, "other", { PortBindings: { "80/tcp": [{ HostPort: "8088" }] } });
    return () => {
      service.close();
      internet.kill();
    };
  });

  /** A sandbox that is removed at the end of the test. */
  const sandbox = async (network: string, more?: object) => {
    const made = await container(found, network, "sleep 1000", more);
    onTestFinished(() => made.remove({ force: true }));
    return made;
  };
  const neighbour = async (network: string) => {
    const { made, address } = await server(found, network);
    onTestFinished(() => made.remove({ force: true }));
    return { peer: made, place: { "another one on it": `${address} 80` } };
  };

  /** Which of `places` can be reached from there. */
  const reached = async (from: Docker.Container, places: Readonly<Record<string, string>>) => {
    const gateway = "gateway=$(ip route | sed -n 's/^default via \\([^ ]*\\).*/\\1/p')";
    const tries = Object.entries(places).map(([name, place]) => {
      const address = place.replace("gateway", "$gateway");
      return `${ASK} ${address} 2>/dev/null | grep -q reached && echo "${name}" &`;
    });
    const printed = await answers(from, [gateway, ...tries, "wait"].join("\n"));
    return printed.split("\n").filter(Boolean).sort();
  };
  /** Tries again what a busy machine answers too late. Fails at once if any other place is reached. */
  const reaches = async (from: Docker.Container, places: typeof PLACES, expected: readonly string[]) => {
    for (let tries = 1; ; tries++) {
      const found = await reached(from, places);
      if (tries === 20 || !found.every((place) => expected.includes(place))) expect(found).toEqual(expected);
      if (found.length === expected.length) return;
    }
  };

  test("`bridge` leads to the internet, and to no private address or address of the host", async () => {
    const id = await opened(found).prepare("bridge", signal);
    await reaches(await sandbox(id), PLACES, ["the internet"]);
  });

  test("without a firewall, all of these could be reached", async () => {
    const id = await opened(found, "operator").prepare("bridge", signal);
    await reaches(await sandbox(id), PLACES, Object.keys(PLACES).sort());
  });

  test("an isolated internal network reaches only its own members", async () => {
    const name = await network(found, SHUT);
    const { place } = await neighbour(name);
    const from = await sandbox(await opened(found).prepare(name, signal));
    await reaches(from, { ...PLACES, ...place }, ["another one on it"]);
  });

  test("two sandboxes on `bridge` cannot reach each other", async () => {
    const id = await opened(found).prepare("bridge", signal);
    const { peer, place } = await neighbour(id);
    await reaches(peer, place, Object.keys(place));
    expect(await reached(await sandbox(id), place)).toEqual([]);
  });

  test("`bridge` resolves names even if the resolver has a private address", async () => {
    const id = await opened(found).prepare("bridge", signal);
    const from = await sandbox(id);
    await expect.poll(() => answers(from, "nslookup -type=a some.example")).toContain("203.0.113.7");
  });

  test("a sandbox that gives itself an IPv6 address cannot reach the host by it", async () => {
    const expectFrom = async (firewall: "managed" | "operator", expected: readonly string[]) => {
      const deployment = newName();
      const id = await opened(found, firewall, deployment).prepare("bridge", signal);
      const from = await sandbox(id, { ReadonlyPaths: [] });
      const { Options } = await found.docker.getNetwork(id).inspect();
      const bridge = Options?.["com.docker.network.bridge.name"];
      // It counts once no other machine has claimed it, which takes a second.
      const address = `ip -6 -o addr show dev ${bridge} -tentative`;
      const [host] = /fe80:[^/]*/.exec(await run(`until ${address} | grep fe80; do sleep 0.02; done`)) ?? [];
      const settings = "/proc/sys/net/ipv6/conf/eth0";
      await answers(from, `echo 0 > ${settings}/accept_dad; echo 0 > ${settings}/disable_ipv6`);
      await reaches(from, { "the host": `${host}%eth0 8080` }, expected);
    };
    await expectFrom("managed", []);
    await expectFrom("operator", ["the host"]);
  });

  test("removed firewall rules are restored once, before the next container starts", async () => {
    const deployment = newName();
    const [one, other] = [opened(found, "managed", deployment), opened(found, "managed", deployment)];
    const id = await one.prepare("bridge", signal);
    const from = await sandbox(id);
    const hooks = async () =>
      (await run("iptables -S; ip6tables -S")).match(/^-A \S+ -i sk-\S+ -j (SKEIN-|DROP).*/gm);
    const before = await hooks();
    expect(before).toHaveLength(4);
    for (const tool of ["iptables", "ip6tables"])
      await run(
        `${tool} -S | sed -nE 's/^-A (\\S+ -i sk-\\S+ -j (SKEIN-|DROP))/-D \\1/p' | xargs -rL1 ${tool}`,
      );
    expect(await hooks()).toBeNull();
    expect(await reached(from, PLACES)).not.toEqual(["the internet"]);
    const ids = await Promise.all([1, 2, 3].map(() => one.prepare("bridge", signal)));
    expect(await other.prepare("bridge", signal)).toBe(id);
    expect(new Set(ids)).toEqual(new Set([id]));
    await reaches(from, PLACES, ["the internet"]);
    expect(await hooks()).toEqual(before);
  });

  test("removal leaves no network and no rule behind; a network with a sandbox is not removed", async () => {
    const rules = () => run("iptables -S; ip6tables -S");
    const before = await rules();
    const { prepare, remove } = opened(found);
    const id = await prepare("bridge", signal);
    const from = await container(found, id, "sleep 1000");
    await expect(remove(signal)).rejects.toMatchObject({ status: 403 });
    await reaches(from, PLACES, ["the internet"]);
    await from.remove({ force: true });
    await remove(signal);
    expect(await rules()).toBe(before);
    await expect(found.docker.getNetwork(id).inspect()).rejects.toMatchObject({ statusCode: 404 });
    await remove(signal);
  });

  test("a server that is not on the engine's machine is refused, and leaves nothing behind", async () => {
    const room = new URL("../../../src/sandbox/docker/", import.meta.url);
    const program = `
      import { connect } from "${room}engine.ts";
      import { networks } from "${room}network.ts";
      const logger = { info() {}, warn() {}, error() {} };
      const { prepare } = networks(connect({ host: "${found.host}" }), { deployment: "test-elsewhere", mark: "test-elsewhere", firewall: "managed", logger });
      await prepare("bridge", new AbortController().signal).catch((error) => console.log(error.code + ": " + error.message));
    `;
    const node = [process.execPath, "--input-type=module", "--eval", program];
    const { stdout } = await execute("unshare", ["--net", ...node]);
    expect(stdout).toContain("backend_refused: ");
    expect(stdout).toContain("`backends.docker.firewall: operator`");
    const names = (await found.docker.listNetworks()).map(({ Name }) => Name);
    expect(names.filter((name) => name.startsWith("skein-"))).toEqual([]);
  });

  test("a network of that name with other settings is not used", async () => {
    const deployment = newName();
    const { prepare, remove } = opened(found, "managed", deployment);
    const id = await prepare("bridge", signal);
    const { Name } = await found.docker.getNetwork(id).inspect();
    await remove(signal);
    await found.docker.createNetwork({ Name, Driver: "bridge" });
    await refuses(() => prepare("bridge", signal), "backend_failed", "Remove it");
  });
});

/** Beside the engine's host, in a network namespace of its own. Ended by the caller, or with this process. */
async function startInternet(): Promise<ChildProcessWithoutNullStreams> {
  const program = fileURLToPath(new URL("../../support/internet/main.ts", import.meta.url));
  const internet = spawn("unshare", ["--net", process.execPath, program]);
  await once(internet.stdout, "data");
  return internet;
}
