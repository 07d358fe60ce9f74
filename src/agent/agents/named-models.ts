// Finds the models that an agent in the file names: its own model, the fallbacks and the models of its hooks.

import { z } from "zod";
import { type Fault, SELDOM } from "../../lib/check.ts";
import { ModelSpec } from "../core/agent.ts";
import { messageOf } from "../core/errors.ts";
import type { Catalogue } from "./catalogue.ts";
import type { RawAgent } from "./raw-agent.ts";

/** Returns the models with their positions in the file. Skips parts that the schema has rejected. */
export function modelsIn(
  { fields, placeOf }: Pick<RawAgent, "fields" | "placeOf">,
  { hooks }: Catalogue,
): { readonly spec: ModelSpec; readonly path: Fault["path"] }[] {
  const own = ModelSpec.safeParse(fields.model, SELDOM).data;
  const settings = Hooks.safeParse(fields.hooks, SELDOM).data ?? {};
  const ofHooks = hooks.flatMap(({ name, options, models }) => {
    const set = models && name in settings ? options.safeParse(settings[name], SELDOM) : undefined;
    if (!models || !set?.success) return [];
    return models(set.data).map((spec) => ({ spec, path: [...placeOf("hooks"), name] }));
  });
  return [...(own === undefined ? [] : [{ spec: own, path: placeOf("model") }]), ...ofHooks];
}

const Hooks = z.record(z.string(), z.unknown());

/** Returns the faults of each model in a chain, with the model's position. */
export function modelFaults(spec: ModelSpec, path: Fault["path"], { createModel }: Catalogue): Fault[] {
  const { fallback = [], ...first } = typeof spec === "string" ? { first: spec } : spec;
  const links = [
    { link: typeof spec === "string" ? spec : (first as ModelSpec), at: path },
    ...fallback.map((link, index) => ({ link, at: [...path, "fallback", index] })),
  ];
  return links.flatMap(({ link, at }) => {
    try {
      createModel(link);
      return [];
    } catch (error) {
      return [{ path: at, message: messageOf(error) }];
    }
  });
}
