// A plugin is an object with a name and any of eight parts, each of the same type as Skein's own.

import type { ModelFactory } from "../../agent/core/agent.ts";
import type { PlacedHook } from "../../agent/core/hook-order.ts";
import type { TaskBoard } from "../../agent/core/task-board.ts";
import type { Tool, TraceRecorder } from "../../agent/core/tool.ts";
import type { OwnBackendType } from "../../sandbox/own.ts";
import type { OwnScheme } from "../auth/own-scheme.ts";
import type { PluginRoutes } from "../http/plugin-routes.ts";

export interface Plugin {
  /** 1 to 64 characters out of a-z 0-9 _ -; no other plugin of the server may have it. */
  readonly name: string;
  /** Agents switch them on, and set their options, by name under `hooks:`. Outside the built-in ones unless placed. */
  readonly hooks?: readonly PlacedHook[];
  /** Agents have them when their `tools:` name them. */
  readonly tools?: readonly Tool[];
  /** Providers of models, by the word before the colon in `model: provider:model`. */
  readonly models?: Readonly<Record<string, ModelFactory>>;
  /** By the `type` of an agent's `backend`. In server.yaml only. */
  readonly backends?: Readonly<Record<string, OwnBackendType>>;
  /** Chosen by `auth.scheme`. In server.yaml only. */
  readonly auth?: OwnScheme;
  /** Records the spans of model calls and tool calls, and what hooks record. In server.yaml only. */
  readonly recorder?: TraceRecorder;
  /** Where delegated tasks are claimed and settled, in place of the built-in board. In server.yaml only. */
  readonly tasks?: TaskBoard;
  /** Served below `/plugins/<name>/`. In server.yaml only. */
  readonly routes?: PluginRoutes;
}

/** The default export of a plugin's module is one of these, or an array of them. */
export const definePlugin = (plugin: Plugin): Plugin => plugin;
