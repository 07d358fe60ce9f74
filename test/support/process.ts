// The server as its own process, which can be killed.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { NODE_ENV } from "./node.ts";
import { isBuilt, MAIN } from "./program.ts";
import { temporaryFolder } from "./server.ts";

/** What is built has its own compile cache, with the code of a server that has executed runs: script/warm.ts. */
const { NODE_COMPILE_CACHE: _, ...BUILT_ENV } = NODE_ENV;

export interface Skein {
  readonly child: ChildProcess;
  /** Everything it has printed so far. */
  output(): string;
  /** Resolves with its exit code, or the signal that ended it. */
  readonly exited: Promise<number | NodeJS.Signals>;
}

export interface ServerProcess extends Skein {
  readonly url: string;
}

/** Runs `skein …`, in `cwd` or this folder, of this release or of another one. Killed, if it still runs, when the test has finished. */
export function skein(
  args: readonly string[],
  env: Record<string, string>,
  cwd?: string,
  main: string = MAIN,
): Skein {
  const process = lastingSkein(args, env, cwd, main);
  onTestFinished(() => killed(process));
  return process;
}

/** Ends a server, and returns its log, which is then complete. */
export async function completeLog({ child, exited, output }: Skein): Promise<string> {
  child.kill("SIGTERM");
  await exited;
  return output();
}

/** Resolves when it has exited. */
export async function killed({ child, exited }: Skein): Promise<void> {
  child.kill("SIGKILL");
  await exited;
}

/** As `skein`, ended by the caller. */
export function lastingSkein(
  args: readonly string[],
  env: Record<string, string>,
  cwd?: string,
  main: string = MAIN,
): Skein {
  return started(
    spawn(process.execPath, [main, ...args], {
      cwd,
      env: { ...(main === MAIN && isBuilt ? BUILT_ENV : NODE_ENV), ...env },
      stdio: ["ignore", "pipe", "pipe"],
    }),
  );
}

/** A process that has just been started, ended by the caller. */
export function started(child: ChildProcess): Skein {
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => (text += String(chunk)));
  const exited = once(child, "close").then(([code, signal]) => code ?? signal);
  return { child, output: () => text, exited };
}

/** A server in `dir` whose model plays `script`, once it takes requests. */
export async function serve(
  dir: string,
  script: string,
  env: Record<string, string> = {},
  agent = "assistant",
): Promise<ServerProcess> {
  await writeFile(join(dir, "script.yaml"), script);
  const agents = `agents: { ${agent}: { model: "scripted:${join(dir, "script.yaml")}", backend: { type: local } } }`;
  await writeFile(join(dir, "agents.yaml"), agents);
  return serving(skein(["serve"], { ...settingsOf(dir), ...env }));
}

export interface Configured {
  /** A folder that outlives the server; default: one of its own. */
  readonly dir?: string;
  readonly script?: string;
  /** More keys of its agent, which is called `assistant`. */
  readonly agent?: object;
  readonly env?: Record<string, string>;
}

/** A server with `config` as its `server.yaml`, once it takes requests. */
export async function serveWith(
  config: object,
  { dir: known, script = "- { say: ok }", agent, env }: Configured = {},
): Promise<ServerProcess & { readonly dir: string }> {
  const dir = known ?? (await temporaryFolder());
  const file = { agents: { assistant: { model: `scripted:${join(dir, "script.yaml")}`, ...agent } } };
  await writeFile(join(dir, "script.yaml"), script);
  await writeFile(join(dir, "agents.yaml"), JSON.stringify(file));
  await writeFile(join(dir, "server.yaml"), JSON.stringify(config));
  const settings = { ...settingsOf(dir), CONFIG_FILE: join(dir, "server.yaml"), ...env };
  return { ...(await serving(skein(["serve"], settings))), dir };
}

const settingsOf = (dir: string) => ({
  PORT: "0",
  DATA_DIR: join(dir, "data"),
  AGENTS_FILE: join(dir, "agents.yaml"),
});

/** The process, once it takes requests. */
export async function serving(server: Skein): Promise<ServerProcess> {
  const url = await new Promise<string>((resolve, reject) => {
    server.child.stdout?.on("data", () => {
      const address = /serves on (http:\S+)/.exec(server.output())?.[1];
      if (address) resolve(address);
    });
    void server.exited.then((code) =>
      reject(new Error(`The server ended with ${code}:\n${server.output()}`)),
    );
  });
  return { ...server, url };
}
