// The tenants' HTTP tools in memory.

import { jsonCopy } from "../../lib/json.ts";
import { type HttpTool, type HttpToolStore, MAX_HTTP_TOOLS } from "../../tools/http/registration.ts";
import { tooManyHttpTools } from "../http-tool-limit.ts";
import type { Book } from "./book.ts";

export function memoryHttpTools(book: Pick<Book, "assertOpen">): HttpToolStore {
  const tenants = new Map<string, Map<string, HttpTool>>();
  const toolsOf = (tenant: string): ReadonlyMap<string, HttpTool> => {
    book.assertOpen();
    return tenants.get(tenant) ?? new Map();
  };

  return {
    async put(tenant, tool) {
      const tools = toolsOf(tenant);
      if (!tools.has(tool.name) && tools.size >= MAX_HTTP_TOOLS) throw tooManyHttpTools();
      tenants.set(tenant, new Map([...tools, [tool.name, jsonCopy(tool)]]));
    },
    async get(tenant, name) {
      const tool = toolsOf(tenant).get(name);
      return tool && jsonCopy(tool);
    },
    async list(tenant) {
      const tools = [...toolsOf(tenant).values()];
      return tools.sort((a, b) => (a.name < b.name ? -1 : 1)).map(jsonCopy);
    },
    async delete(tenant, name) {
      const tools = new Map(toolsOf(tenant));
      const existed = tools.delete(name);
      if (tools.size > 0) tenants.set(tenant, tools);
      else tenants.delete(tenant);
      return existed;
    },
  };
}
