// The aliases for models that an agents file defines under `models`. An alias can be used wherever a model is
// named.

import { z } from "zod";
import { SELDOM } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { type ModelConfig, ModelSpec, modelNamed } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import type { Catalogue } from "./catalogue.ts";

/** The models by alias. A model may itself be an alias, and its fallbacks may be aliases too. */
export type ModelAliases = Readonly<Record<string, ModelSpec>>;

/** Returns the aliases in a file's data, or no aliases if they have faults, which the schema reports. */
export const aliasesIn = (data: unknown): ModelAliases =>
  WithModels.safeParse(data, SELDOM).data?.models ?? {};
const WithModels = z.looseObject({ models: z.record(z.string(), ModelSpec).optional() });

/** Adds these aliases to the catalogue. Other names must be `provider:model` or a well-known model name. */
export function withAliases(catalogue: Catalogue, aliases: ModelAliases): Catalogue {
  return {
    ...catalogue,
    aliases: Object.keys(aliases),
    createModel: (spec) => catalogue.createModel(withoutAliases(spec, aliases)),
    modelDoubt: (spec) => catalogue.modelDoubt(withoutAliases(spec, aliases)),
  };
}

type Single = string | ModelConfig;

/**
 * Resolves the aliases in a model spec. Throws `config_invalid` for an alias that refers to itself and for an
 * unknown name.
 */
function withoutAliases(spec: ModelSpec, aliases: ModelAliases): ModelSpec {
  const [first = "", ...fallback] = chainOf(spec, aliases, []);
  // Only the map form of a model has fallbacks.
  return typeof first === "string" || fallback.length === 0 ? first : { ...first, fallback };
}

function chainOf(spec: ModelSpec, aliases: ModelAliases, through: readonly string[]): Single[] {
  if (typeof spec !== "string") {
    const { fallback = [], ...first } = spec;
    return [first, ...fallback.flatMap((each) => chainOf(each, aliases, through))];
  }
  const meant = Object.hasOwn(aliases, spec) ? aliases[spec] : undefined;
  if (meant === undefined) {
    const hint = spec.includes(":") ? "" : didYouMean(spec, Object.keys(aliases));
    if (hint) throw new AppError("config_invalid", `There is no model \`${spec}\` under \`models\`${hint}`);
    modelNamed(spec);
    return [spec];
  }
  if (through.includes(spec))
    throw new AppError(
      "config_invalid",
      `\`${spec}\` refers back to itself: ${[...through, spec].join(" → ")}.`,
    );
  return chainOf(meant, aliases, [...through, spec]);
}
