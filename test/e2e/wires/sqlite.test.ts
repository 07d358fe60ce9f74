// What stock clients are promised, on SQLite.

import { describe } from "vitest";
import { onSqlite } from "../../support/deployments.ts";
import { deployAs } from "../../support/server.ts";
import { oneWire } from "./wires.ts";

deployAs(onSqlite);

describe("langgraph on SQLite", async () => {
  await oneWire();
});
