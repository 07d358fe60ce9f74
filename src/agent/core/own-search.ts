// The web search that a model's provider executes: which requests offer it, and which models may not be called because
// they would search.

import { AppError } from "./errors.ts";
import { WEB_SEARCH } from "./flow.ts";
import type { PlannedSearches } from "./hook.ts";
import type { Model, ModelRequest, ProviderSearch, ToolSchema } from "./model.ts";
import type { MutableRun } from "./run.ts";
import { type Tool, valueKey } from "./tool.ts";

/** True if a rule denies searches, or asks about them, in the current step of the run. */
export const SEARCH_IS_DENIED = valueKey<boolean>("search is denied");

export const hasDomains = ({ allowed_domains, blocked_domains }: ProviderSearch): boolean =>
  allowed_domains !== undefined || blocked_domains !== undefined;

/** True if the model's provider can execute a search with these limits. */
export const canSearch = ({ searches, searchesEverywhere }: Model, limits: ProviderSearch): boolean =>
  searches === true && !(searchesEverywhere && hasDomains(limits));

/**
 * Returns the model. Throws `config_invalid` if the model, or one of its fallbacks, searches in every answer but cannot
 * limit its searches to the domains of a tool.
 */
export function withinDomains(model: Model, tools: readonly Pick<Tool, "ofProvider">[]): Model {
  const limits = tools.flatMap(({ ofProvider }) => ofProvider ?? []);
  for (let each: Model | undefined = model; each; each = each.fallback)
    if (each.alwaysSearches && !limits.every((limit) => canSearch(each, limit)))
      throw new AppError(
        "config_invalid",
        `\`${each.name}\` searches the web in every answer and cannot limit its search to domains. Use another model, or remove \`allowed_domains\` and \`blocked_domains\` from the settings of the search (\`web.search\` in server.yaml).`,
      );
  return model;
}

/**
 * Leaves out a search that the model's provider cannot execute. Throws `model_rejected` for a model that would search
 * against the rules or beyond the allowed domains.
 */
export function asOffered(request: ModelRequest, run: MutableRun): ModelRequest {
  const { model } = request;
  const tools = request.tools.filter(({ ofProvider }) => !ofProvider || canSearch(model, ofProvider));
  if (model.alwaysSearches && run.values.get(SEARCH_IS_DENIED))
    throw refusal(model, `the rules do not allow \`${WEB_SEARCH}\` for every query`);
  if (model.alwaysSearches && tools.length < request.tools.length)
    throw refusal(model, "its search cannot be limited to domains");
  return { ...request, tools };
}

const refusal = ({ name }: Model, why: string) =>
  new AppError(
    "model_rejected",
    `\`${name}\` searches the web in every answer, but ${why}. Use another model.`,
  );

/**
 * Returns the number of searches that the model's provider makes for the request. Returns undefined if it has no
 * limit, or no search.
 */
export function searchesPlanned({
  model,
  tools,
}: Pick<ModelRequest, "model" | "tools">): PlannedSearches | undefined {
  if (model.alwaysSearches) return { most: 1, least: 1 };
  const [limits] = tools.flatMap(({ ofProvider }) =>
    ofProvider && canSearch(model, ofProvider) ? [ofProvider] : [],
  );
  // Chat Completions accepts no limit. Each answer counts as one search.
  const most = limits && model.searchesEverywhere ? 1 : limits?.max_uses;
  return most === undefined ? undefined : { most, least: 0 };
}

/** Lowers the number of searches in the request. Leaves out a search that may not be made once. */
export const withSearchLimit = (tools: readonly ToolSchema[], most: number): readonly ToolSchema[] =>
  tools.flatMap((tool) => {
    if (!tool.ofProvider) return [tool];
    return most === 0 ? [] : [{ ...tool, ofProvider: { ...tool.ofProvider, max_uses: most } }];
  });

/** True if the model's provider may search the web during the call. */
export const maySearch = ({ model, tools }: Pick<ModelRequest, "model" | "tools">): boolean =>
  model.alwaysSearches === true || tools.some(({ ofProvider }) => ofProvider !== undefined);
