// Selects the events that a stream of the protocol requests.

import { z } from "zod";
import { boundedList } from "../../../lib/bounded-schemas.ts";
import type { LangGraphEvent } from "./told.ts";

const Namespace = boundedList(z.string().max(512), 32);

export const StreamBody = z.looseObject({
  channels: z
    .array(z.string().max(256))
    .min(1)
    .max(64)
    .describe(
      "Channels to receive: values, checkpoints, lifecycle, input, messages, tools, custom, custom:<name>. Other channels send nothing.",
    ),
  namespaces: boundedList(Namespace, 256)
    .optional()
    .describe("Only events at or below one of these namespaces."),
  depth: z.int().min(0).optional().describe("Maximum depth below the namespaces."),
  since: z.int().min(0).optional().describe("Only events after the event with this `seq`."),
});
export type StreamFilter = z.infer<typeof StreamBody>;

export function matches({ channels, namespaces, depth }: StreamFilter, told: LangGraphEvent): boolean {
  return (
    channelsOf(told).some((channel) => channels.includes(channel)) &&
    (!namespaces ||
      namespaces.length === 0 ||
      namespaces.some(
        (prefix) =>
          isBelow(told.namespace, prefix) &&
          (depth === undefined || told.namespace.length - prefix.length <= depth),
      ))
  );
}

function channelsOf({ method, data }: LangGraphEvent): string[] {
  if (method === "input.requested") return ["input"];
  return method === "custom" ? ["custom", `custom:${String(data.name)}`] : [method];
}

/** A part of a prefix without an id matches all parts of its kind: `tools` matches `tools:call_1`. */
function isBelow(namespace: readonly string[], prefix: readonly string[]): boolean {
  return prefix.every((part, index) => {
    const own = namespace[index];
    return own === part || (!part.includes(":") && own?.split(":")[0] === part);
  });
}
