// Lists the backend types. To add a type, add a folder here and a line to each of these lists.

import { z } from "zod";
import type { BackendDefinition } from "./definition.ts";
import { docker } from "./docker/index.ts";
import { local } from "./local/index.ts";
import { type OwnBackendType, ownBackend } from "./own.ts";

export const backends: readonly BackendDefinition[] = [local, docker];

/** The accepted values of an agent's `backend`. */
export const BackendOptions = z.discriminatedUnion("type", [local.options, docker.options]);

/** Merges the built-in types with those of plugins, by name. */
export function withOwnBackends(own: Readonly<Record<string, OwnBackendType>>) {
  const more = Object.entries(own).map(([type, each]) => ownBackend(type, each));
  const options = [...BackendOptions.options, ...more.map((each) => each.options)] as const;
  return {
    definitions: [...backends, ...more] as readonly BackendDefinition[],
    // The static type contains only the common options, because only the driver of a type reads its other options.
    options: z.discriminatedUnion("type", options) as unknown as typeof BackendOptions,
  };
}
