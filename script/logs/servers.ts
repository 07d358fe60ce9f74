// The servers for recording logs: Skein as a process, and the endpoint of its tools.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

export interface RecordingServer {
  url(): string;
  /** Kills the server and starts another one with the same data and port. */
  restart(): Promise<void>;
  stop(): Promise<void>;
}

export async function startServer(env: Record<string, string>, port: number): Promise<RecordingServer> {
  const begin = async (): Promise<ChildProcess> => {
    const child = spawn(process.execPath, [MAIN, "serve"], {
      env: { PATH: process.env.PATH ?? "", NODE_NO_WARNINGS: "1", PORT: `${port}`, ...env },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let printed = "";
    for await (const piece of child.stdout) {
      printed += String(piece);
      if (printed.includes("serves on")) break;
    }
    if (!printed.includes("serves on")) throw new Error(`The server does not start:\n${printed}`);
    return child;
  };
  const end = async (child: ChildProcess) => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  };
  let child = await begin();
  return {
    url: () => `http://127.0.0.1:${port}`,
    async restart() {
      await end(child);
      child = await begin();
    },
    stop: () => end(child),
  };
}

interface ToolCall {
  readonly name: string;
  readonly result_url: string;
  answer(result: unknown): void;
}

export interface ToolCalls {
  readonly url: string;
  /** Returns the next call of this tool that has not been returned yet. */
  next(tool: string): Promise<ToolCall>;
  close(): void;
}

/** Starts the endpoint of two tools: `freight` defers its result, and `quote` waits until the recording answers. */
export async function startTools(): Promise<ToolCalls> {
  const calls: ToolCall[] = [];
  let wake = () => {};
  const reply = (response: ServerResponse, result: unknown) =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ result }));
  const server = createServer(async (request, response) => {
    const call = JSON.parse(await text(request)) as Omit<ToolCall, "answer">;
    if (call.name === "freight") response.writeHead(202).end();
    calls.push({ ...call, answer: (result) => reply(response, result) });
    wake();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async next(tool) {
      for (;;) {
        const at = calls.findIndex(({ name }) => name === tool);
        const [found] = at < 0 ? [] : calls.splice(at, 1);
        if (found) return found;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
