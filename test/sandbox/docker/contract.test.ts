import { expect, test } from "vitest";
import { backendContract } from "../../contracts/backend/index.ts";
import { execute } from "../../support/backend.ts";
import { describeWithEngine } from "../../support/engine.ts";
import { ada, configOf, newServer, newWorld } from "./opened.ts";

// test/sandbox/shell runs the same contract in every kind of shell, without an engine.
describeWithEngine("a Docker backend of an image with Perl", (engine) => {
  backendContract(async () => {
    const { pool } = newServer(engine, await newWorld());
    const backend = await pool.get(ada, await configOf(engine, "debian"));
    return { backend, close: () => pool.close() };
  });

  test("answers hundreds of file operations at once", async () => {
    const { pool } = newServer(engine, await newWorld());
    const backend = await pool.get(ada, await configOf(engine, "debian"));
    const { signal } = new AbortController();
    const refused = async () => {
      const all = Array.from({ length: 300 }, () => backend.stat(".", signal));
      return (await Promise.allSettled(all)).filter(({ status }) => status === "rejected").length;
    };
    // Shells refuse most of them until the file helper runs.
    await expect.poll(refused).toBe(0);
  });

  test("keeps no process of a closed server while others use the sandbox", async () => {
    const world = await newWorld();
    const config = await configOf(engine, "debian");
    const first = newServer(engine, world, { isShared: true });
    const second = newServer(engine, world);
    await first.pool.start(ada, config);
    const backend = await second.pool.get(ada, config);
    const helpers = async () =>
      (await execute(backend, "cat /proc/[0-9]*/comm | grep -cx skein-files")).output;
    await expect.poll(helpers).toBe("2\n");
    await first.pool.close();
    await expect.poll(helpers).toBe("1\n");
    for (let time = 0; time < 5; time++) expect(await helpers()).toBe("1\n");
  });
});
