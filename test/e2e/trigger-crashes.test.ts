// A server that is killed while it takes deliveries: each is sent again, as its sender does without an answer, and has one run.

import { afterAll, expect, test } from "vitest";
import { createClient } from "../../src/client/client.ts";
import { deliver, fromGithub, githubIssue } from "../support/deliveries.ts";
import { needing } from "../support/needing.ts";
import { killed, type ServerProcess, serveWith } from "../support/process.ts";
import { temporaryFolder } from "../support/server.ts";
import { USUAL_STORES } from "../support/shared-stores.ts";

const SECRET = "a secret of 16 characters or more";
const DELIVERIES = 24;
const KILLS = 3;

interface Answer {
  readonly id: string;
  readonly run_id: string;
}

/** Undefined without an answer. */
async function send(url: string, id: string): Promise<Answer | undefined> {
  const sent = fromGithub(SECRET, githubIssue("opened", 7, `issue ${id}`), { id });
  try {
    const answer = await deliver(url, sent);
    expect(answer.status).toBe(202);
    return { id, run_id: ((await answer.json()) as Answer).run_id };
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** Sends many deliveries at once, and kills the server when the first one is answered: the others are on their way. */
async function killedMeanwhile(server: ServerProcess, url: string, ids: readonly string[]) {
  const first = Promise.withResolvers<void>();
  const all = Promise.all(
    ids.map(async (id) => {
      const answer = await send(server.url + url, id);
      first.resolve();
      return answer ?? [];
    }),
  );
  await first.promise;
  await killed(server);
  return (await all).flat();
}

/** `config`: of servers that share a store. `dir`: their folder. */
async function deliverThroughKills(config: object, dir: string): Promise<void> {
  const serve = () => serveWith(config, { dir });
  let server = await serve();
  const { url } = await createClient({ baseUrl: server.url }).triggers.put("issues", {
    ...{ agent: "assistant", verify: { scheme: "github" }, secret: SECRET },
    input: "{{body.issue.title}}",
  });
  const told = new Map<string, string>();
  const ids = Array.from({ length: KILLS * DELIVERIES }, (_, at) => `d${at}`);
  for (let at = 0; at < ids.length; at += DELIVERIES) {
    for (const { id, run_id } of await killedMeanwhile(server, url, ids.slice(at, at + DELIVERIES)))
      told.set(id, run_id);
    server = await serve();
  }
  const { runs } = createClient({ baseUrl: server.url });
  for (const id of ids) {
    const [one, other] = await Promise.all([send(server.url + url, id), send(server.url + url, id)]);
    expect(one).toEqual({ id, run_id: told.get(id) ?? other?.run_id });
    expect(other).toEqual(one);
    told.set(id, one?.run_id ?? "");
  }
  // While runs end, their threads move within the list, and one page may miss some.
  const listed = async () => (await runs.list({ limit: 100 })).items.map(({ id }) => id).toSorted();
  await expect.poll(listed).toEqual([...told.values()].toSorted());
}

test("a delivery whose server dies before it responds has one run after it is sent again, with SQLite", async () => {
  await deliverThroughKills({ store: "sqlite" }, await temporaryFolder());
});

for (const { start, program } of USUAL_STORES) {
  const shared = await start();
  afterAll(() => shared?.close());

  needing(shared, program).test(
    `a delivery whose server dies before it responds has one run after it is sent again, with ${program}`,
    async () => {
      if (!shared) throw new Error("There was a store a moment ago.");
      const config = { store: shared.kind, [shared.kind]: { url: await shared.database(), lease: "2s" } };
      await deliverThroughKills(config, await temporaryFolder());
    },
  );
}
