// The names of all wires, as `wires` in config/server.yaml lists them, and their paths.

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

/** Off by default: through these wires other programs reach the agents. */
const FOR_PROGRAMS: ReadonlySet<WireName> = new Set(["mcp", "a2a"]);

/** Wires that are on if the settings name none. */
export const DEFAULT_WIRES: readonly WireName[] = WireName.options.filter((name) => !FOR_PROGRAMS.has(name));

/** Path of the agent card of an A2A server. */
export const SERVER_CARD = "/.well-known/agent-card.json";

/** Path of the agent card for A2A clients before 0.3. */
export const OLD_SERVER_CARD = "/.well-known/agent.json";

export const prefixOf = (name: WireName) => PREFIXES[name];

/**
 * Removes doubled slashes, and slashes at the end, from the URL of a wire. People paste such base URLs, and clients
 * append a path. Other paths stay unchanged: a file's name may end with a slash.
 */
export function withoutNeedlessSlashes(url: string): string {
  const [path = ""] = url.split("?", 1);
  if (path.length < 2 || !(path.endsWith("/") || path.includes("//"))) return url;
  const plain = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  return isWirePath(plain) ? plain + url.slice(path.length) : url;
}

/** Returns the wire to which a path belongs. */
export function wireAt(url: string): WireName | undefined {
  const [path = ""] = url.split("?", 1);
  if (path === SERVER_CARD || path === OLD_SERVER_CARD) return "a2a";
  return WireName.options.find((name) => {
    const prefix = PREFIXES[name];
    return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === "/");
  });
}

/** True if a path belongs to a wire, so that stock clients may send their headers there. */
export const isWirePath = (url: string): boolean => wireAt(url) !== undefined;
