// What stock clients are promised, on SQLite.

import { describe } from "vitest";
import { onSqlite } from "../../support/deployments.ts";
import { deployAs } from "../../support/server.ts";
import { askedAndFollowed } from "./wires.ts";

deployAs(onSqlite);

// What differs from memory is below the wires, which keep nothing of their own: what one of them asks and follows is enough.
describe("ai-sdk on SQLite", async () => {
  await askedAndFollowed();
});
