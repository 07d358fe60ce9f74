// Checks agents that search the web through their model's provider. They need a model whose provider supports this.

import { type Fault, SELDOM } from "../../lib/check.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import { ModelSpec } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import type { Model } from "../core/model.ts";
import { canSearch } from "../core/own-search.ts";
import type { Catalogue } from "./catalogue.ts";
import { automaticModel } from "./model-choice.ts";
import { namedTools, type RawAgent } from "./raw-agent.ts";

/**
 * Returns a fault for each tool that an agent names but that its model's provider cannot execute. A pattern
 * is not a fault, because it does not select a tool that the provider cannot execute. A fallback model of
 * another provider answers without searching the web.
 */
export function searchFaults({ fields, placeOf }: RawAgent, catalogue: Catalogue, env: Variables): Fault[] {
  const limits = new Map(
    catalogue.tools().flatMap(({ name, ofProvider }) => (ofProvider ? [[name, ofProvider] as const] : [])),
  );
  const wanted = namedTools(fields).flatMap((name, index) => {
    const limit = limits.get(name);
    return limit ? [{ index, limit }] : [];
  });
  if (wanted.length === 0) return [];
  const model = modelOf(fields.model, catalogue, env);
  if (!model) return [];
  return wanted.flatMap(({ index, limit }) =>
    canSearch(model, limit) ? [] : [{ path: [...placeOf("tools"), index], message: reasonFor(model) }],
  );
}

function reasonFor({ name, searches }: Model): string {
  if (searches)
    return `is executed by the provider of \`${name}\`, which cannot limit its search to domains: remove \`allowed_domains\` and \`blocked_domains\` from \`web.search\` in server.yaml, or use a model of \`anthropic\``;
  return `is executed by the model's provider, because \`web.search\` in server.yaml has \`provider: model\`, but \`${name}\` has no search of its own: use a model of \`anthropic\`, a search model of \`openai\`, a model with \`searches: true\` behind a gateway that can search, or another search service`;
}

/** Returns the model, or undefined if the model is invalid for another reason. */
function modelOf(field: unknown, { createModel }: Catalogue, env: Variables): Model | undefined {
  const spec = field === undefined ? automaticModel(env) : ModelSpec.safeParse(field, SELDOM).data;
  if (spec === undefined) return undefined;
  try {
    return createModel(spec);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
