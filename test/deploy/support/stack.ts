// compose.yaml on the engine of a test: the image of the server, and beside it Debian's Redis and Caddy.

import { execFile } from "node:child_process";
import { chmod, chown, cp, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Engine } from "../../support/engine.ts";
import { temporaryFolder } from "../../support/server.ts";
import { IMAGE_FACTS } from "./facts.ts";
import { docker, IMAGE, loadBase } from "./image.ts";

const run = promisify(execFile);

/** What the images of Redis and Caddy do by themselves. */
const BESIDE = `FROM skein-test/parts
ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data
WORKDIR /data
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
`;

/** A privileged container cannot be run wherever tests are: in place of an engine in it, the test's own has its socket there. */
const override = (socketFolder: string) => `services:
  redis: { image: skein-test/beside }
  proxy: { image: skein-test/beside }
  engine:
    image: skein-test/beside
    privileged: false
    command: [sleep, infinity]
    healthcheck: { test: [CMD, test, -S, /run/engine/docker.sock] }
volumes:
  engine-socket: { driver_opts: { type: none, o: bind, device: "${socketFolder}" } }
`;

/** Under `url` once `docker-compose up` has started it; `secrets` are its .env. Its agents have an image of the tests for sandboxes. */
export async function prepareStack(
  engine: Pick<Engine, "host" | "image">,
  secrets: Readonly<Record<string, string>>,
): Promise<{ url: string; compose(...args: string[]): Promise<void> }> {
  await loadBase(engine, "parts");
  await docker(engine, ["build", "--tag", "skein-test/beside", "-"], BESIDE);
  const dir = await temporaryFolder();
  await cp("compose.yaml", join(dir, "compose.yaml"));
  await cp("deploy", join(dir, "deploy"), { recursive: true });
  const agents = join(dir, "deploy/compose/agents.yaml");
  const text = await readFile(agents, "utf8");
  await writeFile(agents, text.replace("python:3.12-slim", await engine.image("perl")));
  const socket = engine.host.slice("unix://".length);
  await chown(socket, 0, IMAGE_FACTS.group);
  await chmod(dirname(socket), 0o711);
  await writeFile(join(dir, "override.yaml"), override(dirname(socket)));
  const lines = Object.entries({ ...secrets, SKEIN_IMAGE: IMAGE }).map(
    ([name, value]) => `${name}=${value}\n`,
  );
  await writeFile(join(dir, ".env"), lines.join(""));
  const files = ["--file", "compose.yaml", "--file", "override.yaml", "--project-name", "skein"];
  const env = { ...process.env, DOCKER_HOST: engine.host };
  return {
    url: "http://127.0.0.1:8000",
    async compose(...args) {
      await run("docker-compose", [...files, ...args], { cwd: dir, env });
    },
  };
}
