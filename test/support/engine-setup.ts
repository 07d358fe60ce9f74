// Finds out, once for a run, which Docker engine its tests have: as root on Linux one of their own for each test
// file; elsewhere the machine's, where one answers. Without any, the tests that need one are skipped; in CI the run
// fails.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { fileURLToPath } from "node:url";
import Docker from "dockerode";
import type { TestProject } from "vitest/node";

export type FoundEngine =
  | { readonly kind: "own"; readonly images: string }
  | { readonly kind: "machine"; readonly images: string; readonly host: string }
  | { readonly kind: "none"; readonly why: string };

declare module "vitest" {
  interface ProvidedContext {
    engine: FoundEngine;
  }
}

export async function setup(project: TestProject): Promise<void> {
  const found = await find().catch((error: Error): FoundEngine => {
    if (process.env.CI) throw new Error(`The tests have no Docker engine. ${error.message}`);
    return { kind: "none", why: error.message };
  });
  project.provide("engine", found);
}

async function find(): Promise<FoundEngine> {
  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  if (isRoot) await script("test-engine", "prepare");
  const host = isRoot ? undefined : await machinesEngine();
  const images = (await script("test-images")).trim();
  return host === undefined ? { kind: "own", images } : { kind: "machine", images, host };
}

async function machinesEngine(): Promise<string> {
  const own = `${homedir()}/.docker/run/docker.sock`;
  const host = process.env.DOCKER_HOST || `unix://${existsSync(own) ? own : "/var/run/docker.sock"}`;
  await new Docker().ping().catch((error: Error) => {
    throw new Error(
      `${host} does not answer (${error.message}). Start Docker, or run the tests as root on Linux.`,
    );
  });
  return host;
}

/** Its output. Its standard error is shown at once, and is the message of the error when it fails. */
async function script(name: string, ...args: string[]): Promise<string> {
  const path = fileURLToPath(new URL(`../../script/${name}`, import.meta.url));
  const child = spawn("sh", [path, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  let complaints = "";
  child.stdout.on("data", (chunk) => (printed += String(chunk)));
  child.stderr.on("data", (chunk) => {
    complaints += String(chunk);
    process.stderr.write(chunk);
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`script/${name} failed: ${complaints.trim()}`);
  return printed;
}
