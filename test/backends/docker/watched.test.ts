// Where the engine cannot hold a workspace to its size, and the server cannot either, it is watched.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { execute, refuses } from "../../support/backend.ts";
import { describeWithOwnEngine } from "../../support/engine.ts";
import { ada, configOf, newServer, newWorld } from "./opened.ts";

const { signal } = new AbortController();

describeWithOwnEngine("a workspace that nothing but a watch holds to its size", (engine) => {
  test("ends a command that writes too much, and takes nothing more until there is room", async () => {
    const config = await configOf(engine, "busybox", { disk: "32m" });
    const world = await newWorld();
    // No disk of a size can be made where they are kept.
    await writeFile(join(world.dataDir, "volumes"), "in the way");
    const { pool } = newServer(engine, world);
    const backend = await pool.get(ada, config);
    const result = await execute(
      backend,
      "for i in 1 2 3; do dd if=/dev/zero of=f$i bs=1M count=20; done; sleep 300",
    );
    expect(result).toMatchObject({ ended: "disk-limit", exitCode: null });
    await refuses(() => backend.write("more", Buffer.from("x"), signal), "backend_failed", "disk is full");
    await execute(backend, "rm f*");
    expect(await backend.write("more", Buffer.from("x"), signal)).toBe(1);
    expect((await execute(backend, "dd if=/dev/zero of=large bs=1M count=40")).exitCode).not.toBe(0);
  });
});
