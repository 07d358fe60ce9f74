import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readlink } from "node:fs/promises";
import { networkInterfaces } from "node:os";
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { describeWithEngine, describeWithOwnEngine, type TestImage } from "./engine.ts";

const WORKS: readonly (readonly [TestImage, string])[] = [
  ["busybox", "test $(stat -c %u:%g /workspace) = 1000:1000 && setsid true && echo works"],
  ["perl", "perl -MPOSIX -e 'print qq(works\n)'"],
  ["debian", "ls --version | grep -q GNU && setsid true && python3 -c 'import os; print(\"works\")'"],
  ["bare", "! test -e /workspace && ! grep 1000 /etc/passwd && echo works"],
];

describeWithEngine("a test's engine", (engine) => {
  test.each(WORKS)("runs commands in the image `%s`", async (name, command) => {
    const output = new PassThrough();
    await engine.docker.run(await engine.image(name), ["sh", "-c", command], output, { Tty: true });
    output.end();
    expect(await text(output)).toBe("works\r\n");
  });
});

describeWithOwnEngine("a test's own engine", (engine) => {
  test.each(["stop", "kill"] as const)("starts again after `%s`, with its data", async (end) => {
    const image = await engine.image("busybox");
    const container = await engine.docker.createContainer({
      Image: image,
      Cmd: ["sleep", "1000"],
      HostConfig: { Init: true },
    });
    await container.start();
    await engine[end]();
    await expect(engine.docker.ping()).rejects.toThrow(/ENOENT|ECONNREFUSED/);
    await engine.start();
    expect((await container.inspect()).State.Running).toBe(false);
    await container.start();
    expect((await container.inspect()).State.Running).toBe(true);
  });

  test("sees only its own network and firewall", async () => {
    expect(Object.keys(networkInterfaces())).toEqual(["lo"]);
    const [ours, theirs] = await Promise.all([
      readlink("/proc/self/ns/net"),
      readlink(`/proc/${process.ppid}/ns/net`),
    ]);
    expect(ours).not.toBe(theirs);
  });

  test("leaves nothing behind when its owner is killed", async () => {
    const holder = spawn(process.execPath, ["--input-type=module", "--eval", HOLD], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [folder] = await once(createInterface({ input: holder.stdout }), "line");
    expect(existsSync(folder)).toBe(true);
    holder.kill("SIGKILL");
    await expect.poll(() => existsSync(folder)).toBe(false);
  });
});

const HOLD = `
import { startOwnEngine } from "${import.meta.resolve("./own-engine.ts")}";
const { host } = await startOwnEngine();
console.log(host.slice("unix://".length, -"/docker.sock".length));
setInterval(() => {}, 60_000);
`;
