// The types of backend there are. A new one is a folder here and a line in each of these lists.

import { z } from "zod";
import type { BackendDefinition } from "./definition.ts";
import { docker } from "./docker/index.ts";
import { local } from "./local/index.ts";

export const backends: readonly BackendDefinition[] = [local, docker];

/** What an agent may say under `backend:`. */
export const BackendOptions = z.discriminatedUnion("type", [local.options, docker.options]);
