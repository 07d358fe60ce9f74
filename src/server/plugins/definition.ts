// A plugin is an object with a name and any of nine parts, each of the same type as Skein's own.

import type { ModelFactory } from "../../agent/core/agent.ts";
import type { PlacedHook } from "../../agent/core/hook-order.ts";
import type { KeyWrapper } from "../../agent/core/key-wrapper.ts";
import type { TaskBoard } from "../../agent/core/task-board.ts";
import type { Tool, TraceRecorder } from "../../agent/core/tool.ts";
import type { OwnBackendType } from "../../sandbox/own.ts";
import type { OwnScheme } from "../auth/own-scheme.ts";
import type { PluginRoutes } from "../http/plugin-routes.ts";

export interface Plugin {
  /** 1 to 64 of the characters a-z, 0-9, _ and -. Must be unique among the server's plugins. */
  readonly name: string;
  /**
   * Hooks, which agents enable and configure by name under `hooks:`. They surround the built-in hooks unless you place
   * them elsewhere.
   */
  readonly hooks?: readonly PlacedHook[];
  /** Tools, which an agent gets if they are listed in its `tools:`. */
  readonly tools?: readonly Tool[];
  /** Model providers, by the word before the colon in `model: provider:model`. */
  readonly models?: Readonly<Record<string, ModelFactory>>;
  /** Backends, by the `type` in an agent's `backend`. Only for plugins listed in server.yaml. */
  readonly backends?: Readonly<Record<string, OwnBackendType>>;
  /** An authentication scheme, selected by `auth.scheme`. Only for plugins listed in server.yaml. */
  readonly auth?: OwnScheme;
  /** Records the spans of model calls and tool calls, and the records of hooks. Only for plugins listed in server.yaml. */
  readonly recorder?: TraceRecorder;
  /** Claims and settles delegated tasks, and replaces the built-in board. Only for plugins listed in server.yaml. */
  readonly tasks?: TaskBoard;
  /** Encrypts the vault's keys, and replaces `vault.key`. Only for plugins listed in server.yaml. */
  readonly vaultKey?: KeyWrapper;
  /** Routes, served below `/plugins/<name>/`. Only for plugins listed in server.yaml. */
  readonly routes?: PluginRoutes;
}

/** Adds types to a plugin. A plugin's module has one plugin, or an array of plugins, as its default export. */
export const definePlugin = (plugin: Plugin): Plugin => plugin;
