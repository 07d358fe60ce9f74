// Which test files a run has. `npm test` has those that stay in one process, and a few that start programs.

import { existsSync, globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { numberOfCommit } from "../../script/commit-number.ts";

/** `npm run check` has them: they read sources and documents, or try the tests' own tools. */
const ABOUT_SOURCES = [
  "test/{functions,long-work,names,prose,release,rooms,sentences,waiting}.test.ts",
  "test/bench/*.test.ts",
  "test/examples/docs.test.ts",
  "test/support/{flaky,needing}.test.ts",
];

/** `npm test` has these of the files that start programs: a little of each kind. */
const SMOKE = [
  "test/skein/cli/init.test.ts",
  "test/sandbox/shell/shell.test.ts",
  "test/agent/agents/load.test.ts",
  "test/engine/stores/schema.test.ts",
  "test/deploy/proxies.test.ts",
];

/**
 * Files that start no program but are slow (attacks, faults, random walks, large data), or that test what few deployments and
 * clients meet. `npm run test:all` has them.
 */
const LONG = [
  "test/agent/hooks/permissions/{flow,properties}.test.ts",
  "test/agent/models/{azure,closed-turns,failures,malformed-arguments,odd-streams,repair,vertex}.test.ts",
  "test/e2e/{admin,admin-keys,agent-schedules,audit,late-results,mcp-availability,quotas,shares,triggers,webhooks}.test.ts",
  "test/e2e/{oauth,oauth-deletions,oauth-order,oauth-refusals,oauth-wires,openai-search,provider-search-*}.test.ts",
  "test/engine/{audit,schedules,triggers,vault,webhooks}/*.test.ts",
  "test/wires/{newer-events,repeats}.test.ts",
  "test/wires/{a2a,langgraph,mcp}/*.test.ts",
  "test/wires/{ag-ui/older-clients,ai-sdk/resume}.test.ts",
  "test/wires/openai/{items,responses-interrupts,tool-choice}.test.ts",
  "test/agent/hooks/extra/*.test.ts",
  "test/agent/hooks/permissions/flow-corpus.test.ts",
  "test/agent/tools/mcp/hostile.test.ts",
  "test/agent/tools/web/*.test.ts",
  "test/client/follow.test.ts",
  "test/e2e/{interrupts-providers,odd-providers,overrides,subagent-moments,viewers}.test.ts",
  "test/engine/stores/{many-threads,sqlite,sqlite-checkpoints,sqlite-power-cut}.test.ts",
  "test/hostile-text.test.ts",
  "test/server/http/{bodies,crowd,fuzz,long-writes,slow-readers,slow-requests,tenancy,unread-responses}.test.ts",
  "test/wires/folds.test.ts",
  "test/wires/ag-ui/{conversation,copilotkit,history,interrupts,routes}.test.ts",
  "test/wires/openai/clients.test.ts",
];

/**
 * Only `npm run test:nightly` runs these, because they take minutes. The site changes only with its pages, the package and the image with
 * what they are made from, and the corpus with its rules. The nightly run itself starts chaos for longer. Few deployments have several
 * engines or disks of a hard size. A cluster runs the same scripts as one Redis. The promises to stock clients do not depend on the store,
 * so two replicas on Redis are enough for a commit.
 */
const NIGHTLY = [
  "test/agent/hooks/permissions/corpus.docker.test.ts",
  "test/chaos/{chaos,slots/slots}.test.ts",
  "test/sandbox/docker/{disk,drain,engines}.test.ts",
  "test/deploy/{image.docker,package,site}.test.ts",
  "test/e2e/wires/{postgres,sqlite}.test.ts",
  "test/engine/stores/redis-cluster.test.ts",
];

/**
 * A commit runs one of `SHARES` parts of these files, selected by its hash, and the nightly run all: faults at many moments of real
 * processes, stores and links. Each commit still kills a server in `process.test.ts`, and runs replicas in `replicas.test.ts`.
 */
const FAULTS = [
  "test/e2e/{backup,full-disk,last-release,oauth-replicas,replica-answers,statement-cuts,store-outage,viewers,workers}.test.ts",
  "test/e2e/*-crashes.test.ts",
  "test/engine/stores/{cuts,sqlite-checkpoints,sqlite-power-cut}.test.ts",
  "test/engine/stores/postgres-{crowds,processes}.test.ts",
  "test/engine/stores/redis-{bulk,failover,large,replays,takeover,trouble}.test.ts",
  "test/page/{large,lasting}.test.ts",
  "test/sandbox/docker/healing.test.ts",
  "test/sandbox/shell/files-interrupted.test.ts",
  "test/server/http/{crowd,long-writes,slow-readers,slow-requests}.test.ts",
];

/** A commit also runs one part of these: attacks on sandboxes, on readers of hostile servers, and on routes with random requests. */
const ATTACKS = [
  "test/agent/hooks/permissions/{flow-corpus,real-shells}.test.ts",
  "test/agent/models/odd-streams.test.ts",
  "test/agent/tools/{mcp,web}/hostile.test.ts",
  "test/e2e/sandbox-secrets.docker.test.ts",
  "test/sandbox/docker/{abuse,escape,hijack,network,secrets,tricks}.test.ts",
  "test/server/http/{fuzz,unread-responses}.test.ts",
];

/**
 * A commit also runs one part of these: views in a browser, and the chat in a terminal. Each commit still opens the page, signs in, and sends,
 * answers and reads messages there, and runs the stock clients without a browser.
 */
const VIEWS = [
  "test/e2e/pages/{ag-ui,ai-sdk,langgraph}.test.ts",
  "test/page/{accessible,diagrams,ends,hostile,inbox,keyboard,languages,looks,observing,phone,sources,steady,tab}.test.ts",
  "test/page/*-view.test.ts",
  "test/skein/cli/{chat,chat-commands,chat-once,language,threads,workers}.test.ts",
];
const SHARES = 5;

/** The files that a run leaves out, by their paths from the root. `group` is the value of `TESTS`; without one, a run has what is named to it. */
export function passedOver(group: string | undefined): string[] {
  if (group === undefined) return [];
  const files = listed();
  const isSource = isOneOf(ABOUT_SOURCES);
  if (group === "sources") return files.filter((file) => !isSource(file));
  const sources = files.filter(isSource);
  if (group === "nightly") return sources;
  if (group === "all") return [...sources, ...files.filter(isOneOf(NIGHTLY)), ...ofOtherCommits()];
  if (group === "short") return [...sources, ...longFiles()];
  throw new Error(`TESTS is \`${group}\`; it can be sources, short, all or nightly.`);
}

/** What starts programs or takes long: `npm test` leaves it out. */
export function longFiles(): string[] {
  const [isSmoke, isLong, startsPrograms] = [isOneOf(SMOKE), isOneOf(LONG), createSearch()];
  return listed().filter((file) => isLong(file) || (startsPrograms(file) && !isSmoke(file)));
}

function ofOtherCommits(): string[] {
  const shared = listed()
    .filter(isOneOf([...FAULTS, ...ATTACKS, ...VIEWS]))
    .sort();
  const share = numberOfCommit() % SHARES;
  const others = shared.filter((_, index) => index % SHARES !== share);
  console.log(
    `Share ${share + 1} of ${SHARES} of the tests of faults, attacks and views: this commit leaves out ${others.length} of ` +
      `${shared.length} files. npm run test:nightly runs all.`,
  );
  return others;
}

const listed = () => globSync("test/**/*.test.ts").map((file) => file.replaceAll("\\", "/"));
const isOneOf = (patterns: readonly string[]) => (file: string) =>
  patterns.some((pattern) => posix.matchesGlob(file, pattern));

const IMPORT = /(?:\bfrom|\bimport\(|^import) *["'](\.[^"']+|node:child_process)["']/gm;

/** Whether a file of the tests, or one that it imports of them, can start a program. */
function createSearch(): (file: string) => boolean {
  const found = new Map<string, boolean>();
  const search = (file: string): boolean => {
    const known = found.get(file);
    if (known !== undefined) return known;
    found.set(file, false);
    const imported = [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, path = ""]) => path);
    const starts = imported.some((path) => {
      if (path === "node:child_process") return true;
      const target = posix.join(posix.dirname(file), path);
      return target.startsWith("test/") && existsSync(target) && search(target);
    });
    found.set(file, starts);
    return starts;
  };
  return search;
}
