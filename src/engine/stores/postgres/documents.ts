// Documents in the tables of threads.

import type { Documents } from "../../../agent/core/documents.ts";
import { POSTGRES } from "../sql/dialect.ts";
import { sqlDocuments } from "../sql/documents.ts";
import type { Database } from "./database.ts";
import { executorOn } from "./executor.ts";
import type { Lifetime } from "./lifetime.ts";

/** If there is no `lifetime`, no collection belongs to a thread. */
export function postgresDocuments(database: Database, lifetime?: Pick<Lifetime, "visit">): Documents {
  return sqlDocuments(POSTGRES, ({ name, thread }) => {
    const executor = executorOn(database, ["documents", name]);
    const visit = async () => {
      if (thread) await lifetime?.visit(thread);
    };
    return {
      clock: executor.clock,
      async read(statement) {
        await visit();
        return executor.read(statement);
      },
      async change(asked, decide) {
        await visit();
        return executor.change(asked, decide);
      },
    };
  });
}
