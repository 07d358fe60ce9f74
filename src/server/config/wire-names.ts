// The names of all wires, as used in `wires` in config/server.yaml, and their paths.

import { z } from "zod";

const PREFIXES = {
  "ai-sdk": "/ai-sdk",
  openai: "/v1",
  langgraph: "/langgraph",
  "ag-ui": "/ag-ui",
  mcp: "/mcp",
  a2a: "/a2a",
} as const;

export const WireName = z.enum(Object.keys(PREFIXES) as (keyof typeof PREFIXES)[]);
export type WireName = z.infer<typeof WireName>;

/** Off by default, because these wires expose the agents to other programs. */
const FOR_PROGRAMS: ReadonlySet<WireName> = new Set(["mcp", "a2a"]);

/** The wires that are enabled if the settings do not list any wires. */
export const DEFAULT_WIRES: readonly WireName[] = WireName.options.filter((name) => !FOR_PROGRAMS.has(name));

/** The path of an A2A server's agent card. */
export const SERVER_CARD = "/.well-known/agent-card.json";

/** The path of the agent card for A2A clients before 0.3. */
export const OLD_SERVER_CARD = "/.well-known/agent.json";

export const prefixOf = (name: WireName) => PREFIXES[name];

/**
 * Removes double slashes and trailing slashes from a wire's URL: users paste base URLs that have them, and clients
 * append a path. Other paths are unchanged, because a file name may end with a slash.
 */
export function withoutNeedlessSlashes(url: string): string {
  const [path = ""] = url.split("?", 1);
  if (path.length < 2 || !(path.endsWith("/") || path.includes("//"))) return url;
  const plain = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  return isWirePath(plain) ? plain + url.slice(path.length) : url;
}

/** Returns the wire that a path belongs to. */
export function wireAt(url: string): WireName | undefined {
  const [path = ""] = url.split("?", 1);
  if (path === SERVER_CARD || path === OLD_SERVER_CARD) return "a2a";
  return WireName.options.find((name) => {
    const prefix = PREFIXES[name];
    return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === "/");
  });
}

/** Returns true if a path belongs to a wire, which means that stock clients may send their headers there. */
export const isWirePath = (url: string): boolean => wireAt(url) !== undefined;
