// The tools that tenants register: which addresses they may have, and how runs get them.

import type { ServerConfig } from "../config/server.ts";
import type { Owner } from "../core/ids.ts";
import { hostList } from "../lib/hosts.ts";
import { createPublicFetch, isRefused } from "../lib/ssrf-safe-fetch/index.ts";
import type { AllStores } from "../stores/all-stores.ts";
import { createHttpTools } from "../tools/http/index.ts";
import type { HttpToolStore } from "../tools/http/store.ts";

/** Time limit of a DNS lookup at registration. A name that takes longer is checked when it is called. */
const LOOKUP_MS = 2_000;

export function refusedTools({ http_tools }: ServerConfig): (url: URL) => Promise<boolean> {
  const options = { allow: hostList(http_tools.allow) };
  return (url) => isRefused(url, options, AbortSignal.timeout(LOOKUP_MS));
}

/** The tenants' registered tools, read when a run begins. */
export function tenantTools(
  { public_url, http_tools }: ServerConfig,
  httpTools: HttpToolStore,
  { deferredCalls: store }: AllStores,
) {
  const fetch = createPublicFetch({ allow: hostList(http_tools.allow) });
  const urlOf = (token: string) => `${public_url}/tool-results/${token}`;
  const services = {
    fetch,
    trustAnnotations: http_tools.trust_annotations,
    ...(public_url === undefined ? {} : { deferral: { store, urlOf } }),
  };
  return async ({ tenant }: Owner, agent: string) =>
    createHttpTools(await httpTools.listFor(tenant, agent), services);
}
