import { configDefaults, defineConfig } from "vitest/config";
import { flaky } from "./test/support/flaky.ts";
import { LongestFirst } from "./test/support/longest-first.ts";
import { ownHosts } from "./test/support/own-host.ts";
import { skipped } from "./test/support/skipped.ts";

/** The tests that need a Docker engine: test/support/engine.ts has one for each of these files. */
const docker = ["test/**/docker/**/*.test.ts", "test/**/*.docker.test.ts"];

/**
 * What takes long and seldom fails: attacks, faults, random walks, large data, stock clients on each deployment, each setting through a
 * process. `npm run test:all` has them, `npm test` does not.
 */
export const long = [
  "test/sandbox/docker/{abuse,disk,drain,engines,escape,healing,hijack,lifecycle,network,tricks}.test.ts",
  "test/sandbox/shell/{commands,files,files-interrupted,perl}.test.ts",
  "test/chaos/chaos.test.ts",
  "test/skein/cli/{chat-once,threads,workers}.test.ts",
  "test/wires/acp/{acp,acp-questions,acp-turns}.test.ts",
  "test/client/follow.test.ts",
  "test/deploy/{compose,image.docker,kubernetes,package}.test.ts",
  "test/e2e/wires/{cuts,postgres,replicas,sqlite}.test.ts",
  "test/e2e/{admin,backup,budgets,callback-crashes,credentials-end,first-key,interrupts-providers,langgraph-replicas,last-release}.test.ts",
  "test/e2e/{metrics,newer-release,odd-providers,overrides,poisonous-runs,replica-answers,replica-crashes,sandbox.docker,sessions}.test.ts",
  "test/e2e/{statement-cuts,store-outage,subagent-crashes,subagent-moments,traces,viewers}.test.ts",
  "test/e2e/{wiring,wiring-access,wiring-postgres,wiring-redis,worker-crashes,workers}.test.ts",
  "test/e2e/pages/*.test.ts",
  "test/hostile-text.test.ts",
  "test/examples/{acp,custom-agent,langgraph,library,openai,react}.test.ts",
  "test/agent/hooks/permissions/{corpus.docker,real-shells}.test.ts",
  "test/server/http/{bodies,crowd,fuzz,long-writes,openapi,slow-readers,slow-requests,tenancy,unread-answers}.test.ts",
  "test/page/{accessible,agents-view,conversation,door,files-view,hostile,inbox,keyboard,large,lasting,looks,observing,phone,sign-in,tab}.test.ts",
  "test/wires/folds.test.ts",
  "test/wires/ag-ui/{conversation,copilotkit,history,interrupts,routes}.test.ts",
  "test/wires/langgraph/{protocol,protocol-react,protocol-stream,use-stream}.test.ts",
  "test/wires/{mcp/*,openai/clients}.test.ts",
  "test/engine/stores/{check,cuts,postgres,postgres-processes,postgres-quotas}.test.ts",
  "test/engine/stores/redis-{bulk,cluster,failover,large,quotas,replays,takeover,trouble}.test.ts",
  "test/release.test.ts",
  "test/support/engine.docker.test.ts",
  "test/agent/tools/mcp/{hostile,published}.test.ts",
];
/**
 * What has a process of its own: it changes or measures its process or its clock, makes a browser's globals, loads a module
 * whose state lasts, or replaces what others import. All other files share as many processes as run at a time, which load the
 * program once.
 */
const alone = [
  "test/sandbox/local.test.ts",
  "test/sandbox/shell/{commands,perl-link,session,shell}.test.ts",
  "test/server/config/load.test.ts",
  "test/e2e/{langgraph-replicas,statement-cuts,viewers}.test.ts",
  "test/e2e/wires/{postgres,replicas,sqlite}.test.ts",
  "test/agent/hooks/{run-limits,timeout}.test.ts",
  "test/hostile-text.test.ts",
  "test/server/auth/jwt-keys.test.ts",
  "test/server/http/{crowd,event-loop,fuzz,slow-readers,slow-requests}.test.ts",
  "test/wires/ag-ui/copilotkit.test.ts",
  "test/wires/langgraph/{protocol-react,use-stream}.test.ts",
  "test/agent/models/{azure,vertex}.test.ts",
  "test/page/large.test.ts",
  "test/engine/quotas/reservations.test.ts",
  "test/engine/runs/{executor,leases,trials}.test.ts",
  "test/engine/stores/{memory-room,sqlite-checkpoints,sqlite-power-cut}.test.ts",
];
const passedOver = process.env.TESTS === "short" ? long : [];

/**
 * Time limits are there to end what hangs, never to measure: they are far longer than anything takes on a busy machine.
 */
const PATIENCE_MS = 120_000;

export default defineConfig({
  test: {
    // One of thousands must not refuse a change that it has nothing to do with. The reporter `flaky` names it.
    retry: process.env.TESTS === "all" || process.env.CI ? 1 : 0,
    testTimeout: PATIENCE_MS,
    hookTimeout: PATIENCE_MS,
    expect: { poll: { timeout: PATIENCE_MS / 2 } },
    // Most of the time a test waits: for a process, or a timer. The long ones wait longer.
    maxWorkers: process.env.TESTS === "all" ? 8 : 6,
    sequence: { sequencer: LongestFirst },
    // A process that loads the program makes much that stays: with 1 MiB for what is new, V8 collects all the time.
    execArgv: ["--min-semi-space-size=16"],
    projects: [
      {
        extends: true,
        test: {
          name: "plain",
          include: ["test/**/*.test.ts"],
          exclude: [...docker, ...alone, ...passedOver],
          isolate: false,
          setupFiles: "test/support/shared-process.ts",
        },
      },
      {
        extends: true,
        test: { name: "alone", include: alone, exclude: [...docker, ...passedOver] },
      },
      {
        extends: true,
        test: {
          name: "docker",
          include: docker,
          exclude: passedOver,
          globalSetup: "test/support/engine-setup.ts",
          pool: ownHosts,
        },
      },
    ],
    reporters: [...configDefaults.reporters, skipped, flaky],
  },
});
