// The tables of the tests' PostgreSQL, without what is in them.

import pg from "pg";
import type { TestPostgres } from "../../support/postgres.ts";

/** Emptying tables takes less time than making a database. */
const EMPTY = `DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'skein' AND tablename <> 'format' LOOP
    EXECUTE format('DELETE FROM skein.%I', name);
  END LOOP; END $$`;

export interface Tables {
  /** The url of a database with nothing in it, in which there may be something afterwards. */
  empty(): Promise<string>;
  close(): Promise<void>;
}

export async function tablesOf(postgres: TestPostgres | undefined): Promise<Tables | undefined> {
  if (!postgres) return undefined;
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  return {
    async empty() {
      await client.query(EMPTY);
      return postgres.url;
    },
    close: () => client.end(),
  };
}
