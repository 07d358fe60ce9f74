// What stock clients are promised, on SQLite.

import { describe } from "vitest";
import { onSqlite } from "../../support/deployments.ts";
import { deployAs } from "../../support/server.ts";
import { WIRES } from "./wires.ts";

deployAs(onSqlite);
for (const [wire, load] of Object.entries(WIRES)) {
  describe(`${wire} on SQLite`, async () => {
    await load();
  });
}
