// A Docker engine of the tests' own, made by script/test-engine: other users of the machine are not affected, and nothing
// of it outlives the process that started it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import Docker from "dockerode";

const SCRIPT = fileURLToPath(new URL("../../script/test-engine", import.meta.url));
const START_MS = 90_000;
const LOOK_AGAIN_MS = 20;

export interface OwnEngine {
  /** For `DOCKER_HOST`, and for the server's setting. */
  readonly host: string;
  readonly docker: Docker;
  /** Resolves when it answers. Throws its log when it does not. */
  start(): Promise<void>;
  /** In an orderly way: its containers are stopped. */
  stop(): Promise<void>;
  /** Like `kill -9`: its containers run on until the next start. */
  kill(): Promise<void>;
  /** Ends it, with all that was made in it. */
  close(): Promise<void>;
}

/** Waits for the process that has the turn of that number. What ends it is returned; at the latest it is the end of this process. */
export async function takeTurn(number: number): Promise<() => void> {
  const child = spawn("sh", [SCRIPT, "turn", String(number)], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  return () => void child.stdin.end();
}

/** One that answers, with more options of `dockerd`. The caller closes it. */
export async function startOwnEngine(more: readonly string[] = []): Promise<OwnEngine> {
  const child = spawn("sh", [SCRIPT, "run", ...more], { detached: true, stdio: ["pipe", "pipe", "pipe"] });
  const lines = createInterface({ input: child.stdout });
  const over = once(lines, "close").then(() => "");
  const line = () => Promise.race([once(lines, "line").then(([text]) => String(text)), over]);
  const refusal = text(child.stderr);
  // The process has exited; `ended` reports it.
  child.stdin.on("error", () => {});

  const dir = await line();
  if (!dir) throw new Error(`No Docker engine can be started here: ${await refusal}`);
  const docker = clientOf(`${dir}/docker.sock`);
  let ended = over;
  const end = async (order: "stop" | "kill") => {
    child.stdin.write(`${order}\n`);
    await ended;
  };
  const close = async () => {
    child.stdin.end();
    await over;
  };
  const start = async () => {
    ended = line();
    child.stdin.write("start\n");
    let patience = START_MS / LOOK_AGAIN_MS;
    void ended.then(() => (patience = 0));
    while (!(await docker.ping().catch(() => false))) {
      if (patience-- <= 0) throw new Error(`The Docker engine does not start: ${await logOf(dir)}`);
      await delay(LOOK_AGAIN_MS);
    }
  };
  await start().catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    ...{ host: `unix://${dir}/docker.sock`, docker, start, close },
    ...{ stop: () => end("stop"), kill: () => end("kill") },
  };
}

const logOf = async (dir: string) => (await readFile(`${dir}/log`, "utf8")).slice(-4000);

/** Overrides the environment, whose host the client would prefer. */
function clientOf(socketPath: string): Docker {
  const options = { socketPath, host: undefined };
  return new Docker(options as object);
}
