// compose.yaml with docker-compose, and held against the image and what the server reads.

import { execFile } from "node:child_process";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { Duration } from "../../src/lib/units.ts";
import { newApiKey } from "../../src/server/auth/api-keys.ts";
import { ServerConfig } from "../../src/server/config/server.ts";
import { needing } from "../support/needing.ts";
import { temporaryFolder } from "../support/server.ts";
import { expectStartable, IMAGE_FACTS, unread } from "./support/facts.ts";
import { hasProgram } from "./support/programs.ts";

const run = promisify(execFile);

const Service = z.object({
  image: z.string(),
  privileged: z.boolean().default(false),
  read_only: z.boolean().default(false),
  cap_drop: z.array(z.string()).default([]),
  cap_add: z.array(z.string()).default([]),
  security_opt: z.array(z.string()).default([]),
  tmpfs: z.array(z.string()).default([]),
  volumes: z.array(z.string()).default([]),
  networks: z.array(z.string()),
  ports: z.array(z.string()).default([]),
  command: z.array(z.string()).default([]),
  stop_grace_period: z.string().optional(),
});
type Service = z.output<typeof Service>;
const Compose = z.object({
  services: z.record(z.string(), Service),
  networks: z.record(z.string(), z.object({ internal: z.boolean().default(false) })),
});
const Environments = z.object({
  services: z.record(z.string(), z.object({ environment: z.record(z.string(), z.string()).default({}) })),
});

const { services, networks } = Compose.parse(parse(await readFile("compose.yaml", "utf8"), { merge: true }));
const { redis, engine, proxy, ...replicas } = services;

/** `source:target[:ro]`, `target` of tmpfs. */
const mounts = ({ volumes }: Service) =>
  volumes.map((volume) => {
    const [source = "", target = ""] = volume.split(":");
    return { source, target };
  });
const mountOf = (service: Service | undefined, path: string) =>
  service && mounts(service).find(({ target }) => path === target || path.startsWith(`${target}/`));

needing(hasProgram("docker-compose"), "docker-compose").describe("compose.yaml", () => {
  test("requires the Redis password", async () => {
    await expect(environmentsWith({})).rejects.toThrow("set it in .env");
  });

  test("has two replicas, which start with these settings and use all of them", async () => {
    const environments = await environmentsWith(SECRETS);
    expect(Object.keys(replicas)).toEqual(["skein-1", "skein-2"]);
    for (const name of Object.keys(replicas)) {
      const { REDIS_PASSWORD: _, ...env } = environments[name] ?? {};
      expect(unread(env)).toEqual([]);
      const agents = env.AGENTS_FILE ?? "";
      const { source, target } = mountOf(replicas[name], agents) ?? { source: "none", target: "" };
      await expectStartable(env, join(source, agents.slice(target.length)));
      expect(env.PORT).toBe(String(IMAGE_FACTS.port));
      expect(replicas[name]?.tmpfs).toEqual(["/tmp"]);
      expect(mountOf(replicas[name], IMAGE_FACTS.volume)?.source).toBe("data");
    }
  });

  test("gives a replica longer to stop than it waits for its runs", () => {
    for (const { stop_grace_period = "0" } of Object.values(replicas))
      expect(Duration.parse(stop_grace_period)).toBeGreaterThan(ServerConfig.parse({}).shutdown.grace);
  });

  test("grants rights only to the engine, and does not use this machine's own engine", () => {
    for (const [name, service] of Object.entries(services)) {
      expect(mounts(service).map(({ source }) => source)).not.toContain("/var/run/docker.sock");
      if (name === "engine") continue;
      expect(service).toMatchObject({ privileged: false, read_only: true, cap_drop: ["ALL"] });
      expect(service.security_opt).toEqual(["no-new-privileges:true"]);
      // The program of its image has this capability in its file, and is not started without.
      expect(service.cap_add).toEqual(name === "proxy" ? ["NET_BIND_SERVICE"] : []);
    }
  });

  test("lets only the replicas reach Redis and the engine, and clients only the proxy", async () => {
    const environments = await environmentsWith(SECRETS);
    const on = (network: string) => names(({ networks }) => networks.includes(network));
    expect(networks.store?.internal).toBe(true);
    expect(on("store")).toEqual(["redis", "skein-1", "skein-2"]);
    expect(on("engine")).toEqual(["engine"]);
    const socket = environments["skein-1"]?.DOCKER_HOST ?? "";
    const volume = mountOf(replicas["skein-1"], socket.slice("unix://".length))?.source;
    expect(names((service) => mounts(service).some(({ source }) => source === volume))).toEqual([
      "engine",
      "skein-1",
      "skein-2",
    ]);
    expect(engine?.command).toEqual(["dockerd", `--host=${socket}`, `--group=${IMAGE_FACTS.group}`]);
    expect(names(({ ports }) => ports.length > 0)).toEqual(["proxy"]);
    expect(proxy?.ports).toEqual(["127.0.0.1:8000:8080"]);
  });
});

const names = (isOne: (service: Service) => boolean) =>
  Object.keys(services)
    .filter((name) => services[name] && isOne(services[name]))
    .toSorted();

const SECRETS = { REDIS_PASSWORD: "secret", BOOTSTRAP_API_KEY: newApiKey().key, OPENAI_API_KEY: "sk-1" };

/** What docker-compose gives each service with `secrets` in .env. */
async function environmentsWith(secrets: Readonly<Record<string, string>>) {
  const dir = await temporaryFolder();
  await cp("compose.yaml", join(dir, "compose.yaml"));
  const lines = Object.entries(secrets).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(join(dir, ".env"), lines.join(""));
  const { stdout } = await run("docker-compose", ["-f", "compose.yaml", "config"], { cwd: dir });
  const { services } = Environments.parse(parse(stdout));
  return Object.fromEntries(Object.entries(services).map(([name, { environment }]) => [name, environment]));
}
