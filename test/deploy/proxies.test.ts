// The files of deploy/ with the programs that read them.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { heldAfter } from "../support/gate.ts";
import { needing } from "../support/needing.ts";
import { startServer, temporaryFolder } from "../support/server.ts";
import { post } from "../support/sse.ts";
import { hasProgram } from "./support/programs.ts";

const run = promisify(execFile);

const PROXIES = [
  {
    program: "nginx",
    file: "deploy/nginx/skein.conf",
    // What Debian's nginx.conf has around it.
    wrap: (text: string, dir: string) => `
daemon off; pid ${dir}/nginx.pid; error_log stderr; events {}
http { access_log off;
${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${dir}/${name};`).join(" ")}
${text} }`,
    check: (config: string) => ["-t", "-c", config],
    serve: (config: string) => ["-c", config],
  },
  {
    program: "caddy",
    file: "deploy/caddy/Caddyfile",
    wrap: (text: string) => `{\n\tadmin off\n}\n${text}`,
    check: (config: string) => ["validate", "--adapter", "caddyfile", "--config", config],
    serve: (config: string) => ["run", "--adapter", "caddyfile", "--config", config],
  },
];

for (const { program, file, wrap, check, serve } of PROXIES)
  needing(hasProgram(program), program).describe(`${file} with ${program}`, () => {
    test("is valid, and passes on each event of a run immediately", async () => {
      const { model, release } = heldAfter("one", [{ say: "one two three four" }]);
      const { url } = await startServer({
        model,
        config: { auth: {} },
      });
      const dir = await temporaryFolder();
      const config = join(dir, "config");
      const port = await freePort();
      const text = (await readFile(file, "utf8"))
        .replaceAll("127.0.0.1:8000", new URL(url).host)
        .replace("8080", String(port));
      await writeFile(config, wrap(text, dir));
      await run(program, check(config));
      const child = spawn(program, serve(config), { stdio: "ignore", env: { ...process.env, HOME: dir } });
      const exited = once(child, "exit");
      onTestFinished(async () => {
        child.kill("SIGTERM");
        await exited;
      });
      const address = `http://127.0.0.1:${port}`;
      await expect
        .poll(async () => (await fetch(`${address}/health`).catch(() => undefined))?.status)
        .toBe(200);
      const viewer = await post(`${address}/threads/t1/runs`, { input: "go" });
      // The first word is there before the next ones are said.
      await viewer.until((event) => event.event === "on_chat_model_stream");
      release();
      const events = await viewer.ended();
      expect(events.at(-1)).toMatchObject({ event: "done", data: { status: "success" } });
    });
  });

needing(hasProgram("systemd-analyze"), "systemd-analyze").describe("deploy/systemd/skein.service", () => {
  const unit = "deploy/systemd/skein.service";
  test("is valid", async () => {
    expect(await run("systemd-analyze", ["verify", unit])).toMatchObject({ stdout: "", stderr: "" });
  });

  test("grants the server few rights", async () => {
    // Fails above an exposure of 2.0, of 10.
    const { stdout } = await run("systemd-analyze", ["security", "--offline=true", "--threshold=20", unit]);
    expect(stdout).toMatch(/Overall exposure level/);
  });
});
