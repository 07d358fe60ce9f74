import { configDefaults, defineConfig } from "vitest/config";
import { ownHosts } from "./test/support/own-host.ts";
import { skipped } from "./test/support/skipped.ts";

/** The tests that need a Docker engine: test/support/engine.ts has one for each of these files. */
const docker = ["test/**/docker/**/*.test.ts", "test/**/*.docker.test.ts"];

/** What takes long and seldom fails: attacks, faults, random walks. `npm run test:all` has them, `npm test` does not. */
const long = [
  "test/backends/docker/{abuse,disk,escape,healing,hijack,network,tricks}.test.ts",
  "test/chaos/chaos.test.ts",
  "test/e2e/{callback-crashes,redis-outage,replica-crashes,sandbox.docker,subagent-crashes}.test.ts",
  "test/hooks/permissions/{corpus.docker,real-shells}.test.ts",
  "test/http/{fuzz,slow-readers}.test.ts",
  "test/stores/redis-{cluster,cuts,failover,large,replays,trouble}.test.ts",
  "test/support/engine.docker.test.ts",
  "test/tools/mcp/hostile.test.ts",
];
const passedOver = process.env.TESTS === "short" ? long : [];

/**
 * Time limits are there to end what hangs, never to measure: they are far longer than anything takes on a busy machine.
 */
const PATIENCE_MS = 120_000;

export default defineConfig({
  test: {
    testTimeout: PATIENCE_MS,
    hookTimeout: PATIENCE_MS,
    expect: { poll: { timeout: PATIENCE_MS / 2 } },
    projects: [
      {
        extends: true,
        test: {
          name: "plain",
          include: ["test/**/*.test.ts"],
          exclude: [...docker, ...passedOver],
          // Most of the time a test waits: for a process, or a timer.
          maxWorkers: 6,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "docker",
          include: docker,
          exclude: passedOver,
          globalSetup: "test/support/engine-setup.ts",
          pool: ownHosts,
          // Each has an engine, which has the machine to itself.
          maxWorkers: 1,
          sequence: { groupOrder: 0 },
        },
      },
    ],
    reporters: [...configDefaults.reporters, skipped],
  },
});
