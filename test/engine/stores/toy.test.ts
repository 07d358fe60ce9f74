// The recipe docs/contributing/recipes/add-a-store.md, followed: a store in few lines keeps every promise.

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { anyCommandsContract } from "../../contracts/any-commands.ts";
import { busContract } from "../../contracts/bus.ts";
import { resultsAfterClockSetBackContract } from "../../contracts/clock-set-back.ts";
import { deferredCallsContract } from "../../contracts/deferred-calls.ts";
import { documentsContract } from "../../contracts/documents.ts";
import { documentListsContract } from "../../contracts/documents-lists.ts";
import { eventsContract } from "../../contracts/events.ts";
import { itemLivesContract } from "../../contracts/items-lives.ts";
import { ownersContract } from "../../contracts/owners.ts";
import { runsContract } from "../../contracts/runs.ts";
import { storesContract } from "../../contracts/stores.ts";
import { threadsContract } from "../../contracts/threads.ts";
import type { Open } from "./fixture.ts";
import { createToyStores } from "./toy/index.ts";

const open: Open = async (options) => createToyStores(options);

threadsContract(open);
runsContract(open);
eventsContract(open);
anyCommandsContract(open, 25);
deferredCallsContract(open);
resultsAfterClockSetBackContract(open);
itemLivesContract(open);
ownersContract(open);
storesContract(open);
documentsContract(open);
documentListsContract(open);
busContract(open);

test("a store that meets the contracts takes fewer than 600 lines, not counting blank ones", () => {
  const folder = new URL("./toy/", import.meta.url);
  const texts = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), "utf8"));
  const lines = texts.flatMap((text) => text.split("\n")).filter((line) => line.trim() !== "");
  expect(lines.length).toBeLessThan(600);
});
