import { defineConfig } from "vitest/config";
import { ownHosts } from "./test/support/own-host.ts";

/** The tests that need a Docker engine: test/support/engine.ts has one for each of these files. */
const docker = ["test/**/docker/**/*.test.ts", "test/**/*.docker.test.ts"];

export default defineConfig({
  test: {
    testTimeout: 20_000,
    hookTimeout: 20_000,
    // Most of the time a test waits: for a process, a container, a timer.
    maxWorkers: 3,
    projects: [
      { extends: true, test: { name: "plain", include: ["test/**/*.test.ts"], exclude: docker } },
      {
        extends: true,
        test: {
          name: "docker",
          include: docker,
          globalSetup: "test/support/engine-setup.ts",
          pool: ownHosts,
        },
      },
    ],
  },
});
