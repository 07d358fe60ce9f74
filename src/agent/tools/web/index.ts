// Tools that read and search the web.

import { hostList } from "../../../lib/hosts.ts";
import { createPublicFetch } from "../../../lib/ssrf-safe-fetch/index.ts";
import { createDocumentPool } from "../../../lib/web-documents/pool.ts";
import type { ProviderSearch } from "../../core/model.ts";
import type { Tool } from "../../core/tool.ts";
import { webFetch } from "./fetch.ts";
import { hostsOf, publicGet } from "./get.ts";
import { createRobots } from "./robots.ts";
import { createSearch, type SearchOptions, type ServiceOptions } from "./search/index.ts";
import { providerSearch, webSearch } from "./search.ts";

export interface WebOptions {
  /** The patterns of hosts that may be read. If undefined, all hosts may be read. */
  readonly allow?: readonly string[] | undefined;
  /** The patterns of hosts that are never read. */
  readonly deny: readonly string[];
  /** The hosts that may have private addresses, separated by commas. */
  readonly private: string;
  readonly robots: "respect" | "ignore";
  /** The service that `web_search` uses. Without it, the tool does not exist. */
  readonly search?: SearchSetting | undefined;
}

/** The options of every search service, as they appear in server.yaml. */
type SearchSetting = Pick<SearchOptions, "provider"> & Omit<ServiceOptions, "provider"> & ProviderSearch;

export interface WebTools {
  readonly tools: readonly Tool[];
  /** Ends the threads that read documents. */
  close(): Promise<void>;
}

/** The time limit of a call and the time limit of the work on one document, in milliseconds. */
const LIMITS = { call: 30_000, document: 10_000 };

/** Creates the tools. `userAgent` names this program to the servers that it contacts. */
export function createWebTools(options: WebOptions, userAgent: string, limits = LIMITS): WebTools {
  const pool = createDocumentPool(limits.document);
  const get = publicGet(createPublicFetch({ allow: hostList(options.private) }), userAgent);
  const hosts = hostsOf(options);
  const robots = options.robots === "respect" ? createRobots(get, hosts, pool) : undefined;
  const searches = options.search ? [searchTool(options.search, userAgent)] : [];
  const tools = [webFetch({ get, hosts, pool, robots }, limits.call), ...searches];
  return { tools, close: () => pool.close() };
}

function searchTool({ provider, ...options }: SearchSetting, userAgent: string): Tool {
  return provider === "model"
    ? providerSearch(options)
    : webSearch(createSearch({ provider, ...options }, userAgent));
}
