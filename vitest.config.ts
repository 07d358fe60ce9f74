import { defineConfig } from "vitest/config";
import { ownHosts } from "./test/support/own-host.ts";

/** The tests that need a Docker engine: test/support/engine.ts has one for each of these files. */
const docker = ["test/**/docker/**/*.test.ts", "test/**/*.docker.test.ts"];

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 20_000,
    projects: [
      {
        extends: true,
        test: {
          name: "plain",
          include: ["test/**/*.test.ts"],
          exclude: docker,
          // Most of the time a test waits: for a process, or a timer.
          maxWorkers: 4,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "docker",
          include: docker,
          globalSetup: "test/support/engine-setup.ts",
          pool: ownHosts,
          // Each has an engine, which has the machine to itself.
          maxWorkers: 1,
          sequence: { groupOrder: 0 },
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
