// The tenants' HTTP tools in the file.

import { type HttpTool, type HttpToolStore, MAX_HTTP_TOOLS } from "../../tools/http/registration.ts";
import { tooManyHttpTools } from "../http-tool-limit.ts";
import type { Engine } from "./engine.ts";

interface ToolRow {
  readonly body: string;
}

export function sqliteHttpTools({ database }: Pick<Engine, "database">): HttpToolStore {
  const select = database.query<ToolRow>("SELECT body FROM http_tools WHERE tenant = ? AND name = ?");
  const selectAll = database.query<ToolRow>("SELECT body FROM http_tools WHERE tenant = ? ORDER BY name");
  const count = database.query<{ others: number }>(
    "SELECT count(*) AS others FROM http_tools WHERE tenant = ? AND name <> ?",
  );
  const upsert = database.query("INSERT OR REPLACE INTO http_tools (tenant, name, body) VALUES (?, ?, ?)");
  const remove = database.query("DELETE FROM http_tools WHERE tenant = ? AND name = ?");

  return {
    async put(tenant, tool) {
      const key = [JSON.stringify(tenant), tool.name] as const;
      database.write("durable", () => {
        if ((count.get(...key)?.others ?? 0) >= MAX_HTTP_TOOLS && !select.get(...key))
          throw tooManyHttpTools();
        upsert.run(...key, JSON.stringify(tool));
      });
    },
    async get(tenant, name) {
      const row = database.read(() => select.get(JSON.stringify(tenant), name));
      return row && toolOf(row);
    },
    async list(tenant) {
      return database.read(() => selectAll.all(JSON.stringify(tenant))).map(toolOf);
    },
    async delete(tenant, name) {
      return database.write("durable", () => remove.run(JSON.stringify(tenant), name) > 0);
    },
  };
}

// Only `put` writes this column.
const toolOf = ({ body }: ToolRow) => JSON.parse(body) as HttpTool;
