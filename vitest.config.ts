import { configDefaults, defineConfig } from "vitest/config";
import { flaky } from "./test/support/flaky.ts";
import { passedOver } from "./test/support/groups.ts";
import { LongestFirst } from "./test/support/longest-first.ts";
import { ownHosts } from "./test/support/own-host.ts";
import { skipped } from "./test/support/skipped.ts";

/** The tests that need a Docker engine: test/support/engine.ts has one for each of these files. */
const docker = ["test/**/docker/**/*.test.ts", "test/**/*.docker.test.ts"];

/**
 * What has a process of its own: it changes or measures its process or its clock, makes a browser's globals, loads a module
 * whose state lasts, or replaces what others import. All other files share as many processes as run at a time, which load the
 * program once.
 */
const alone = [
  "test/sandbox/local.test.ts",
  "test/sandbox/shell/{commands,perl-link,session,shell}.test.ts",
  "test/server/config/load.test.ts",
  "test/e2e/{credentials-end,statement-cuts,viewers}.test.ts",
  "test/e2e/wires/{postgres,replicas,sqlite}.test.ts",
  "test/agent/hooks/{budgets,timeout}.test.ts",
  "test/hostile-text.test.ts",
  "test/server/auth/jwt-keys.test.ts",
  "test/server/http/{crowd,event-loop,fuzz,slow-readers,slow-requests}.test.ts",
  "test/wires/ag-ui/copilotkit.test.ts",
  "test/wires/langgraph/{protocol-react,use-stream}.test.ts",
  "test/agent/models/{azure,vertex}.test.ts",
  "test/page/large.test.ts",
  "test/engine/quotas/reservations.test.ts",
  "test/engine/schedules/schedules.test.ts",
  "test/engine/runs/{executor,leases,trials}.test.ts",
  "test/engine/stores/{memory-room,postgres-processes,redis-replicas,shared-events,sqlite-checkpoints,sqlite-power-cut}.test.ts",
];
const DRAWN_CASES = "test/support/drawn-cases.ts";
const left = passedOver(process.env.TESTS);

/**
 * Time limits are there to end what hangs, never to measure: they are far longer than anything takes on a busy machine.
 */
const PATIENCE_MS = 300_000;

export default defineConfig({
  test: {
    setupFiles: [DRAWN_CASES],
    // The terminal's texts are compared in English, also on a German machine.
    env: { LC_ALL: "C" },
    // The reporter `flaky` tells what fails now and then from what is broken.
    retry: process.env.CI ? 1 : 0,
    testTimeout: PATIENCE_MS,
    hookTimeout: PATIENCE_MS,
    expect: { poll: { timeout: PATIENCE_MS / 2 } },
    // Half of the time a test waits, for a process or a timer. With more workers on two processors, tests wait for each other.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // A process that loads the program makes much that stays: with 1 MiB for what is new, V8 collects all the time.
    execArgv: ["--min-semi-space-size=16"],
    projects: [
      {
        extends: true,
        test: {
          name: "plain",
          include: ["test/**/*.test.ts"],
          exclude: [...docker, ...alone, ...left],
          isolate: false,
          setupFiles: [DRAWN_CASES, "test/support/shared-process.ts"],
        },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, exclude: [...docker, ...left] },
      },
      {
        extends: true,
        test: {
          name: "docker",
          include: docker,
          exclude: left,
          globalSetup: "test/support/engine-setup.ts",
          pool: ownHosts,
        },
      },
    ],
    reporters: [...configDefaults.reporters, skipped, flaky],
  },
});
