// The server's image on the engine of a test file, built by the Dockerfile on a base that comes from no registry.

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Engine } from "../../support/engine.ts";
import { openRegistry } from "./registry.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const run = promisify(execFile);

export const IMAGE = "skein-test/server";

/** `docker …` on the engine. Throws with what it printed when it fails. */
export async function docker(
  { host }: Pick<Engine, "host">,
  args: readonly string[],
  input?: string,
): Promise<string> {
  const env = { ...process.env, DOCKER_HOST: host, DOCKER_BUILDKIT: "0" };
  const child = spawn("docker", args, { env, stdio: ["pipe", "pipe", "pipe"] });
  // It may end without reading.
  child.stdin.on("error", () => {});
  child.stdin.end(input);
  const [printed, said, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  if (code !== 0) throw new Error(`docker ${args.join(" ")} ended with ${code}:\n${printed}${said}`);
  return printed.trim();
}

/** Has the engine take one of the images of script/test-base-images, as `skein-test/<name>`. */
export async function loadBase(engine: Pick<Engine, "host">, name: "node" | "parts"): Promise<void> {
  // The parent of a test's process is vitest's, which is in a network with Debian's packages.
  const outside = ["--target", String(process.ppid), "--mount", "--net"];
  const { stdout } = await run("nsenter", [...outside, "sh", join(ROOT, "script/test-base-images")]);
  await docker(engine, ["load", "--quiet", "--input", join(stdout.trim(), `${name}.tar`)]);
}

/** Builds it as `docker build .` does, with the registry of this machine. */
export async function buildImage(engine: Engine): Promise<void> {
  await loadBase(engine, "node");
  const dir = await mkdtemp(join(tmpdir(), "skein-image-"));
  const registry = await openRegistry(dir);
  try {
    const base = `FROM skein-test/node\nENV npm_config_https_proxy=${registry.url}\n`;
    await docker(engine, ["build", "--tag", "skein-test/base", "-"], base);
    const args = ["--network", "host", "--build-arg", "BASE_IMAGE=skein-test/base", "--tag", IMAGE];
    await docker(engine, ["build", ...args, ROOT]);
  } finally {
    await registry.close();
    await rm(dir, { recursive: true });
  }
}

/** As tight as it may be run; `more` are options of `docker run`. The name of the container, which runs. */
export async function runImage(
  engine: Engine,
  more: readonly string[],
  ...command: string[]
): Promise<string> {
  const name = `skein-${randomBytes(4).toString("hex")}`;
  const tight = [
    "--read-only",
    "--tmpfs",
    "/tmp",
    "--cap-drop",
    "ALL",
    "--security-opt",
    "no-new-privileges",
  ];
  const small = ["--pids-limit", "200", "--memory", "512m"];
  await docker(engine, ["run", "--detach", "--name", name, ...tight, ...small, ...more, IMAGE, ...command]);
  return name;
}

export const logsOf = async ({ docker }: Engine, name: string): Promise<string> =>
  String(await docker.getContainer(name).logs({ stdout: true, stderr: true, follow: false }));
