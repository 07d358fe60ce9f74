// The tenants' HTTP tools in Redis: one hash of each. They stay until Redis is emptied.

import { randomId } from "../../lib/random-id.ts";
import { type HttpTool, type HttpToolStore, MAX_HTTP_TOOLS } from "../../tools/http/registration.ts";
import { tooManyHttpTools } from "../http-tool-limit.ts";
import type { Connection } from "./connection.ts";
import { ASKING_MS, deletedToolKey, httpToolsKey } from "./keys.ts";
import { deleteTool } from "./scripts/delete-tool.ts";
import { listTools } from "./scripts/list-tools.ts";
import { putTool } from "./scripts/put-tool.ts";
import { readTool } from "./scripts/read-tool.ts";

export function redisHttpTools(redis: Pick<Connection, "run">): HttpToolStore {
  const keysOf = (tenant: string) => ({ tools: httpToolsKey(tenant) });
  return {
    async put(tenant, tool) {
      const args = { name: tool.name, tool: JSON.stringify(tool), cap: MAX_HTTP_TOOLS };
      if ((await redis.run(putTool, keysOf(tenant), args)) === 0) throw tooManyHttpTools();
    },
    async get(tenant, name) {
      const text = await redis.run(readTool, keysOf(tenant), { name });
      return text === null ? undefined : toolOf(text);
    },
    async list(tenant) {
      const tools = (await redis.run(listTools, keysOf(tenant), {})).map(toolOf);
      return tools.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
    async delete(tenant, name) {
      const keys = { ...keysOf(tenant), deleted: deletedToolKey(tenant, randomId()) };
      return (await redis.run(deleteTool, keys, { name, asking: ASKING_MS })) === 1;
    },
  };
}

// Only `put` writes these.
const toolOf = (text: string) => JSON.parse(text) as HttpTool;
