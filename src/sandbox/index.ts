// The types of backend there are. A new one is a folder here and a line in each of these lists.

import { z } from "zod";
import type { BackendDefinition } from "./definition.ts";
import { docker } from "./docker/index.ts";
import { local } from "./local/index.ts";
import { type OwnBackendType, ownBackend } from "./own.ts";

export const backends: readonly BackendDefinition[] = [local, docker];

/** What an agent may say under `backend:`. */
export const BackendOptions = z.discriminatedUnion("type", [local.options, docker.options]);

/** The built-in types and those of plugins, by name. */
export function withOwnBackends(own: Readonly<Record<string, OwnBackendType>>) {
  const more = Object.entries(own).map(([type, each]) => ownBackend(type, each));
  const options = [...BackendOptions.options, ...more.map((each) => each.options)] as const;
  return {
    definitions: [...backends, ...more] as readonly BackendDefinition[],
    // Only the driver of a type reads more than what all types have.
    options: z.discriminatedUnion("type", options) as unknown as typeof BackendOptions,
  };
}
