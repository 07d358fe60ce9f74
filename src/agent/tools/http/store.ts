// Stores the HTTP tools of each tenant as documents, and selects the tools for an agent.

import { LRUCache } from "lru-cache";
import { globMatcher } from "../../../lib/glob.ts";
import { mapInTicks } from "../../../lib/ticks.ts";
import {
  change,
  type Document,
  type Documents,
  type ListedCollection,
  remove,
} from "../../core/documents.ts";
import { AppError } from "../../core/errors.ts";
import { type HttpTool, succeeding } from "./registration.ts";

/** The maximum number of HTTP tools per tenant. */
export const MAX_HTTP_TOOLS = 100;

/** Stores the tools of tenants. A tool belongs to the tenant, not to the user who registered it. */
export interface HttpToolStore {
  /**
   * Replaces a tool with the same name. Throws `limit_exceeded` for a new tool beyond `MAX_HTTP_TOOLS`, and
   * for a tool that would make the tenant's tools exceed their maximum size.
   */
  put(tenant: string, tool: HttpTool): Promise<void>;
  /**
   * Writes the result of `update`. Calls `update` again if another writer changed the tool first. Returns
   * undefined if the tool does not exist.
   */
  change(
    tenant: string,
    name: string,
    update: (before: HttpTool) => Promise<HttpTool>,
  ): Promise<HttpTool | undefined>;
  get(tenant: string, name: string): Promise<HttpTool | undefined>;
  /**
   * Returns up to `limit` tools after the name `after`, sorted by name (by character codes). Callers share
   * the objects and must not change them.
   */
  list(
    tenant: string,
    page?: { readonly after?: string; readonly limit?: number },
  ): Promise<readonly HttpTool[]>;
  /**
   * Returns the tools whose registrations allow this agent. They are sorted and shared like those of `list`.
   */
  listFor(tenant: string, agent: string): Promise<readonly HttpTool[]>;
  /** Deletes a tool. Returns false when it does not exist. */
  delete(tenant: string, name: string): Promise<boolean>;
}

const toolsOf = (tenant: string): ListedCollection => ({ kind: "tools", tenant });

/** The maximum size of the tools that are cached for runs, in bytes. */
const MAX_READY_BYTES = 64 * 1024 * 1024;

/**
 * Creates the store. `maxBytes` is the maximum size of all of a tenant's tools, including names and headers.
 */
export function createHttpToolStore(documents: Documents, maxBytes: number): HttpToolStore {
  const ready = new LRUCache<string, ReadyTool>({ maxSize: MAX_READY_BYTES });

  const readyOf = (tenant: string, { key, body, version }: Document): ReadyTool => {
    const id = JSON.stringify([tenant, key, version]);
    const tool = ready.get(id) ?? readyTool(body);
    ready.set(id, tool, { size: body.length });
    return tool;
  };

  return {
    put(tenant, tool) {
      const key = tool.name;
      const limit = { count: MAX_HTTP_TOOLS, error: tooMany };
      const size = { bytes: maxBytes, error: () => tooLarge(maxBytes) };
      return change(
        documents,
        { collection: toolsOf(tenant), keys: [key], limit, size },
        ({ found: [found], now }) => {
          const body = JSON.stringify(found ? succeeding(tool, toolOf(found.body), now) : tool);
          return { writes: [{ key, seen: found?.version, body }], result: undefined };
        },
      );
    },
    change(tenant, key, update) {
      const size = { bytes: maxBytes, error: () => tooLarge(maxBytes) };
      return change(
        documents,
        { collection: toolsOf(tenant), keys: [key], size },
        async ({ found: [found] }) => {
          if (!found) return { result: undefined };
          const tool = await update(toolOf(found.body));
          return { writes: [{ key, seen: found.version, body: JSON.stringify(tool) }], result: tool };
        },
      );
    },
    async get(tenant, name) {
      const [found] = (await documents.read(toolsOf(tenant), [name])).found;
      return found && toolOf(found.body);
    },
    async list(tenant, { after, limit = MAX_HTTP_TOOLS } = {}) {
      const { items } = await documents.page(toolsOf(tenant), { order: "key", after, limit });
      return mapInTicks(tenant, items, (document) => readyOf(tenant, document).tool);
    },
    async listFor(tenant, agent) {
      const all = await mapInTicks(tenant, await sorted(documents, tenant), (document) => {
        const { tool, isFor } = readyOf(tenant, document);
        return isFor(agent) ? [tool] : [];
      });
      return all.flat();
    },
    delete: (tenant, name) => remove(documents, toolsOf(tenant), name),
  };
}

const sorted = async (documents: Documents, tenant: string) =>
  (await documents.list(toolsOf(tenant))).toSorted((a, b) => (a.key < b.key ? -1 : 1));

// The cast is safe, because only `put` and `change` write these documents.
const toolOf = (body: string) => JSON.parse(body) as HttpTool;

interface ReadyTool {
  readonly tool: HttpTool;
  isFor(agent: string): boolean;
}

/** The maximum number of agents per tool. For each agent, the cache stores whether the agent may use the tool. */
const MAX_KNOWN_AGENTS = 1000;

function readyTool(body: string): ReadyTool {
  const tool = toolOf(body);
  const matchers = tool.agents.map((pattern) => globMatcher(pattern));
  const known = new Map<string, boolean>();
  return {
    tool,
    isFor(agent) {
      const isFor = known.get(agent) ?? matchers.some((matches) => matches(agent));
      if (known.size < MAX_KNOWN_AGENTS) known.set(agent, isFor);
      return isFor;
    },
  };
}

const tooMany = () =>
  new AppError(
    "limit_exceeded",
    `There are already ${MAX_HTTP_TOOLS} HTTP tools, which is the maximum. Delete one first.`,
    {
      details: { limit: MAX_HTTP_TOOLS },
    },
  );

const tooLarge = (limit: number) =>
  new AppError(
    "limit_exceeded",
    `With this tool, your HTTP tools would have more than ${limit} bytes in total (http_tools.bytes). Delete one first.`,
    { details: { limit } },
  );
