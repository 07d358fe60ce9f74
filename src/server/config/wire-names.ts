// The wires there are, as `wires` in config/server.yaml names them, and where each lies.

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

/** Off unless they are asked for: what reaches agents by them is other programs. */
const FOR_PROGRAMS: ReadonlySet<WireName> = new Set(["mcp", "a2a"]);

/** The wires that are on where none are named. */
export const DEFAULT_WIRES: readonly WireName[] = WireName.options.filter((name) => !FOR_PROGRAMS.has(name));

/** Where A2A looks for the card of a server. */
export const SERVER_CARD = "/.well-known/agent-card.json";

/** Where clients of A2A before 0.3 look for it. */
export const OLD_SERVER_CARD = "/.well-known/agent.json";

export const prefixOf = (name: WireName) => PREFIXES[name];

/**
 * The URL of a wire without doubled slashes and slashes at its end. People paste such a base URL, and clients add a path to it. A native
 * path stays as it is: a file's name may end so.
 */
export function withoutNeedlessSlashes(url: string): string {
  const [path = ""] = url.split("?", 1);
  if (path.length < 2 || !(path.endsWith("/") || path.includes("//"))) return url;
  const plain = path.replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
  return isWirePath(plain) ? plain + url.slice(path.length) : url;
}

/** The wire that a path belongs to. */
export function wireAt(url: string): WireName | undefined {
  const [path = ""] = url.split("?", 1);
  if (path === SERVER_CARD || path === OLD_SERVER_CARD) return "a2a";
  return WireName.options.find((name) => {
    const prefix = PREFIXES[name];
    return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === "/");
  });
}

/** Whether a path belongs to a wire, so that stock clients may send their headers there. */
export const isWirePath = (url: string): boolean => wireAt(url) !== undefined;
