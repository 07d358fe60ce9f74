// Checks agents that search the web through their model's provider. They need a model whose provider supports this.

import { type Fault, SELDOM } from "../../lib/check.ts";
import type { Variables } from "../../lib/yaml/interpolate.ts";
import { ModelSpec } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import type { Model } from "../core/model.ts";
import type { Catalogue } from "./catalogue.ts";
import { automaticModel } from "./model-choice.ts";
import { namedTools, type RawAgent } from "./raw-agent.ts";

/**
 * Returns a fault for each tool that an agent names but that its model's provider cannot execute. A pattern
 * is not a fault, because it does not select a tool that the provider cannot execute. A fallback model of
 * another provider answers without searching the web.
 */
export function searchFaults({ fields, placeOf }: RawAgent, catalogue: Catalogue, env: Variables): Fault[] {
  const ofProvider = new Set(catalogue.tools().flatMap((tool) => (tool.ofProvider ? [tool.name] : [])));
  const named = namedTools(fields).map((name, index) => ({ name, index }));
  const wanted = named.filter(({ name }) => ofProvider.has(name));
  if (wanted.length === 0) return [];
  const model = modelOf(fields.model, catalogue, env);
  if (!model || model.searches) return [];
  const message = `is executed by the model's provider, because \`web.search\` in server.yaml has \`provider: model\`, but \`${model.name}\` has no search of its own: use a model of \`anthropic\`, or another search service`;
  return wanted.map(({ index }) => ({ path: [...placeOf("tools"), index], message }));
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
