// The server and the browser for taking pictures.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

export const launchBrowser = () =>
  chromium.launch({ executablePath: "/usr/bin/chromium-headless-shell", args: ["--no-sandbox"] });

export interface PictureServer {
  readonly url: string;
  readonly pid: number | undefined;
  /** Returns once the process has ended. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Starts a server with scripts and data in `folder`. The caller ends it. Throws if it does not start. */
export async function startServer(folder: string, agents: object, port = "0"): Promise<PictureServer> {
  writeFileSync(join(folder, "agents.yaml"), JSON.stringify(agents));
  const env = {
    ...{ PATH: process.env.PATH, PORT: port, LOG_LEVEL: "silent" },
    ...{ DATA_DIR: join(folder, "data"), AGENTS_FILE: join(folder, "agents.yaml") },
  };
  const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
  const child = spawn(process.execPath, [main, "serve"], {
    env,
    cwd: folder,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const url = await new Promise<string>((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += String(chunk);
      const address = /serves on (http:\S+)/.exec(text)?.[1];
      if (address) resolve(address);
    });
    void ended.then(() => reject(new Error(`The server ended: ${text}`)));
  });
  return {
    url,
    pid: child.pid,
    async end(signal) {
      child.kill(signal);
      await ended;
    },
  };
}
