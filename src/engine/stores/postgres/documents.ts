// Documents in the tables of threads.

import type { Documents } from "../../../agent/core/documents.ts";
import { POSTGRES } from "../sql/dialect.ts";
import { sqlDocuments } from "../sql/documents.ts";
import type { Database } from "./database.ts";
import { executorOn } from "./executor.ts";
import type { Retention } from "./retention.ts";

/** If there is no `retention`, no collection belongs to a thread. */
export function postgresDocuments(database: Database, retention?: Pick<Retention, "visit">): Documents {
  return sqlDocuments(POSTGRES, ({ name, thread }) => {
    const executor = executorOn(database, ["documents", name]);
    const visit = async () => {
      if (thread) await retention?.visit(thread);
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
