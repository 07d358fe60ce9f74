// The wires there are, as `wires` in config/server.yaml names them, and where each lies.

import { z } from "zod";

const PREFIXES = { "ai-sdk": "/ai-sdk", openai: "/v1" } as const;

export const WireName = z.enum(Object.keys(PREFIXES) as (keyof typeof PREFIXES)[]);
export type WireName = z.infer<typeof WireName>;

export const prefixOf = (name: WireName) => PREFIXES[name];

/** Whether a path belongs to a wire, so that stock clients may send their headers there. */
export const isWirePath = (path: string) =>
  Object.values(PREFIXES).some((prefix) => path.startsWith(`${prefix}/`));
