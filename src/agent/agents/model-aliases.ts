// The names that an agents file gives to models, under `models`: used wherever a model is named.

import { z } from "zod";
import { SELDOM } from "../../lib/check.ts";
import { didYouMean } from "../../lib/did-you-mean.ts";
import { type ModelConfig, ModelSpec, modelNamed } from "../core/agent.ts";
import { AppError } from "../core/errors.ts";
import type { Catalogue } from "./catalogue.ts";

/** A model by each name. It may be the name of another one, and have others as its fallbacks. */
export type ModelAliases = Readonly<Record<string, ModelSpec>>;

/** The names in a file's data; none while they have faults, which the schema reports. */
export const aliasesIn = (data: unknown): ModelAliases =>
  WithModels.safeParse(data, SELDOM).data?.models ?? {};
const WithModels = z.looseObject({ models: z.record(z.string(), ModelSpec).optional() });

/** The catalogue with these names for models. Other names must be `provider:model` or well known. */
export function withAliases(catalogue: Catalogue, aliases: ModelAliases): Catalogue {
  return {
    ...catalogue,
    aliases: Object.keys(aliases),
    createModel: (spec) => catalogue.createModel(withoutAliases(spec, aliases)),
    modelDoubt: (spec) => catalogue.modelDoubt(withoutAliases(spec, aliases)),
  };
}

type Single = string | ModelConfig;

/** Throws `config_invalid` for a name that leads back to itself, and for one of no model. */
function withoutAliases(spec: ModelSpec, aliases: ModelAliases): ModelSpec {
  const [first = "", ...fallback] = chainOf(spec, aliases, []);
  // Only a map has fallbacks.
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
      `\`${spec}\` leads back to itself: ${[...through, spec].join(" → ")}.`,
    );
  return chainOf(meant, aliases, [...through, spec]);
}
