// The recipe docs/recipes/add-a-store.md, followed: a store in few lines keeps every promise.

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { busContract } from "../../contracts/bus.ts";
import { resultsAfterClockSetBackContract } from "../../contracts/clock-set-back.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { documentListsContract } from "../../contracts/documents-lists.ts";
import { eventWritesContract } from "../../contracts/event-writes.ts";
import { eventsContract } from "../../contracts/events.ts";
import { httpToolsContract } from "../../contracts/http-tools.ts";
import { itemsContract } from "../../contracts/items.ts";
import { itemLivesContract } from "../../contracts/items-lives.ts";
import { ownersContract } from "../../contracts/owners.ts";
import { runsContract } from "../../contracts/runs.ts";
import { sandboxesContract } from "../../contracts/sandboxes.ts";
import { sentRequestsContract } from "../../contracts/sent-requests.ts";
import { storesContract } from "../../contracts/stores.ts";
import { threadsContract } from "../../contracts/threads.ts";
import type { Open } from "./fixture.ts";
import { createToyStores } from "./toy/index.ts";

const open: Open = async (options) => createToyStores(options);

threadsContract(open);
runsContract(open);
eventsContract(open);
eventWritesContract(open, 25);
deferredCallsContract(open);
resultsAfterClockSetBackContract(open);
itemLivesContract(open);
sentRequestsContract(open);
ownersContract(open);
storesContract(open);
sandboxesContract(open);
documentsContract(open);
documentListsContract(open);
itemsContract(open);
httpToolsContract(open);
busContract(open);

test("a store that passes the contracts takes fewer than 600 lines, blank ones aside", () => {
  const folder = new URL("./toy/", import.meta.url);
  const texts = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), "utf8"));
  const lines = texts.flatMap((text) => text.split("\n")).filter((line) => line.trim() !== "");
  expect(lines.length).toBeLessThan(600);
});
