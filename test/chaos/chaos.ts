// The suite: servers, their store, users, readers and faults, for so many seconds; then the verdict.

import { rmSync } from "node:fs";
import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type FakeProvider, startFakeProvider } from "../support/fake-provider/server.ts";
import type { SharedStore } from "../support/shared-stores.ts";
import { contradictionsIn, placeOf } from "../support/store-check.ts";
import { type Fault, isCalm, strike } from "./faults.ts";
import { Journal } from "./journal.ts";
import { keep } from "./keep.ts";
import { answerTo, askedBy } from "./plan.ts";
import { createRandom } from "./random.ts";
import { Readers } from "./readers.ts";
import { Replicas } from "./replicas.ts";
import { AGENTS } from "./starting.ts";
import { judge, type Times } from "./verdict.ts";
import { work } from "./workload.ts";
import type { World } from "./world.ts";

export interface ChaosOptions {
  readonly seconds: number;
  readonly replicas: number;
  readonly users: number;
  readonly seed: string;
  readonly faults: readonly Fault[];
  /** Keeps the folder also when there are no faults. */
  readonly keep: boolean;
  /** Absent: one server on sqlite, which is all it can be. */
  readonly shared: SharedStore | undefined;
}

export interface Outcome {
  readonly counts: ReadonlyMap<string, number>;
  readonly times: Times;
  /** What the servers had promised never to do. Empty is what this is all about. */
  readonly faults: readonly string[];
  /** What there is to look into. */
  readonly folder: string | undefined;
}

const LEASE_MS = 2_000;
/** How long everything that was begun may take to come to its end, once nothing is in its way. */
const SETTLE_MS = 240_000;

/** Leaves nothing behind but, with faults, a folder. */
export async function chaos(options: ChaosOptions): Promise<Outcome> {
  const dir = await mkdtemp(join(tmpdir(), "skein-chaos-"));
  const remove = () => rmSync(dir, { recursive: true, force: true });
  process.once("exit", remove);
  const journal = new Journal();
  const ledger = join(dir, "ledger");
  const isKept = () => options.keep || journal.faults.length > 0;
  const provider = await startProvider(journal, ledger);
  const database = await options.shared?.database();
  const replicas = new Replicas({
    ...{ count: options.replicas, dir, journal },
    env: await configure(dir, provider, options.shared && { kind: options.shared.kind, url: database }),
    isCalm: () => isCalm({ journal }),
  });
  const over = new AbortController();
  const readers = new Readers({ replicas, journal, signal: over.signal });
  try {
    await replicas.open();
    await turmoil(options, { replicas, readers, journal }, over);
    for (const { body } of provider.requests())
      journal.fault(`the provider refused a history: ${JSON.stringify(body).slice(-2_000)}`);
    const times = await judge({ replicas, readers, journal, executions: await linesOf(ledger) });
    for (const wrong of await contradictionsIn(placeOf(options.shared?.kind, database ?? join(dir, "data"))))
      journal.fault(`the store contradicts itself: ${wrong}`);
    const { counts, faults } = journal;
    return { counts, times, faults, folder: isKept() ? dir : undefined };
  } finally {
    over.abort();
    await replicas.close();
    await provider.close();
    process.off("exit", remove);
    if (isKept()) await keep(dir, journal);
    else remove();
  }
}

/** Resolves when the time is over and all started work has ended, or the grace time is over. */
async function turmoil(
  { seconds, users, seed, faults, shared }: ChaosOptions,
  actors: Pick<World, "replicas" | "readers" | "journal">,
  over: AbortController,
): Promise<void> {
  const random = createRandom(seed);
  const ending = new AbortController();
  const world = { ...actors, ending: ending.signal, over: over.signal };
  const options = { faults, shared, leaseMs: LEASE_MS, isComplete: true };
  const striking = strike(random.branch("faults"), options, world);
  const working = work(users, random.branch("work"), world);
  await Promise.race([sleep(seconds * 1000), Promise.all([striking, working])]);
  ending.abort();
  await striking;
  const deadline = setTimeout(() => {
    for (const reader of world.readers.unfinished) world.journal.fault(`a reader is still at ${reader}`);
    over.abort();
  }, SETTLE_MS);
  await working;
  clearTimeout(deadline);
}

/** Strict about histories; keeps only the requests that it refused. */
function startProvider(journal: Journal, ledger: string): Promise<FakeProvider> {
  return startFakeProvider({
    journal: false,
    script(request) {
      const asked = askedBy(request);
      const { authorization, "x-api-key": key } = request.headers;
      journal.workedOn(asked.plan, String(key ?? authorization).replace("Bearer ", ""));
      return answerTo(asked, journal.newCallId, ledger);
    },
  });
}

/**
 * All servers share one data folder, as they would share a disk: so a file that one has written is there for the
 * next one. The ledger lies beside it, where only commands write.
 */
async function configure(
  dir: string,
  { url }: FakeProvider,
  shared: (Pick<SharedStore, "kind"> & { readonly url: string | undefined }) | undefined,
): Promise<Record<string, string>> {
  // Each server's key is its name: so the provider knows who asks.
  const models = [
    { provider: "openai", model: "gpt-fake", base_url: `${url}/v1`, api_key_env: "REPLICA" },
    { provider: "anthropic", model: "claude-sonnet-4-5", base_url: url, api_key_env: "REPLICA" },
  ];
  const agents = Object.fromEntries(
    AGENTS.map((name, index) => [name, { model: models[index], backend: { type: "local", name: "shared" } }]),
  );
  const server = {
    streams: { heartbeat: "1s" },
    shutdown: { grace: "1s" },
    ...(shared ? { [shared.kind]: { url: shared.url, lease: `${LEASE_MS / 1000}s` } } : {}),
  };
  const files = { AGENTS_FILE: join(dir, "agents.yaml"), CONFIG_FILE: join(dir, "server.yaml") };
  // JSON is YAML.
  await writeFile(files.AGENTS_FILE, JSON.stringify({ agents }));
  await writeFile(files.CONFIG_FILE, JSON.stringify(server));
  return {
    ...files,
    ...{ PORT: "0", DATA_DIR: join(dir, "data"), STORE: shared?.kind ?? "sqlite" },
    // Servers start many times.
    NODE_COMPILE_CACHE: join(dir, "compiled"),
  };
}

async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}
