import { afterAll, expect, onTestFinished, test } from "vitest";
import { userMessage } from "../../../src/agent/core/message.ts";
import { createPostgresStores } from "../../../src/engine/stores/postgres/index.ts";
import { anyCommandsContract } from "../../contracts/any-commands.ts";
import { busContract } from "../../contracts/bus.ts";
import { resultsAfterClockSetBackContract } from "../../contracts/clock-set-back.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { documentListsContract } from "../../contracts/documents-lists.ts";
import { documentStepsContract } from "../../contracts/documents-steps.ts";
import { eventsContract } from "../../contracts/events.ts";
import { itemLivesContract } from "../../contracts/items-lives.ts";
import { nounsOfDocumentsContract, nounsWithRunsContract } from "../../contracts/nouns.ts";
import { ownersContract } from "../../contracts/owners.ts";
import { runsContract } from "../../contracts/runs.ts";
import { schedulesContract } from "../../contracts/schedules.ts";
import { storesContract } from "../../contracts/stores.ts";
import { threadsContract } from "../../contracts/threads.ts";
import { needing } from "../../support/needing.ts";
import { startPostgres } from "../../support/postgres.ts";
import { isNightly } from "../../support/seed.ts";
import { checkedAfter } from "../../support/store-check.ts";
import { ADA, openingAgain, PATIENT } from "./fixture.ts";
import { tablesOf } from "./postgres-tables.ts";

const postgres = await startPostgres();
const tables = await tablesOf(postgres);
afterAll(async () => {
  await tables?.close();
  await postgres?.close();
});

const open = openingAgain(
  () => tables?.empty() ?? expect.fail("There is no PostgreSQL."),
  (url, options) => createPostgresStores({ url, pool: 4, ...PATIENT, ...options }),
  true,
);

needing(postgres, "postgres").describe("postgres stores", () => {
  threadsContract(open);
  runsContract(open);
  eventsContract(open);
  anyCommandsContract(
    checkedAfter(open, () => ({ postgres: postgres?.url ?? "" }), "call_without_message"),
    12,
  );
  documentsContract(open);
  documentListsContract(open);
  documentStepsContract(open);
  itemLivesContract(open);
  deferredCallsContract(open);
  resultsAfterClockSetBackContract(open);
  busContract(open);
  storesContract(open);
  nounsWithRunsContract(open);
  schedulesContract(open);
  // They write documents only, which have a contract of their own. By day, memory and Redis are enough.
  if (isNightly) nounsOfDocumentsContract(open);
  ownersContract(open);

  test("an unfinished copy that a process has left behind does not block another of the same name", async () => {
    if (!tables || !postgres) throw new Error("There is no PostgreSQL.");
    const url = await tables.empty();
    const { threads, close } = await createPostgresStores({ url });
    onTestFinished(close);
    const messages = [userMessage("x"), userMessage("y")];
    await threads.create(ADA, { id: "t", metadata: {}, messages });
    await postgres.ask(
      url,
      `INSERT INTO skein.staged SELECT owner, 'copy', 'dead', position, id, body, (extract(epoch FROM now()) * 1000)::bigint
      FROM skein.messages`,
    );
    await threads.fork(ADA, "t", { id: "copy", metadata: {} });
    expect(await threads.messages(ADA, "copy")).toEqual(messages);
  });
});
