// What a server lists, made into what a model may be offered. Nothing about it is certain: what cannot be
// used is left out with a reason, tool by tool, and no amount of it is too much.

import { z } from "zod";
import type { ToolAnnotations } from "../../core/tool.ts";
import { globMatcher } from "../../lib/glob.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { firstChars } from "../../lib/text.ts";
import type { JsonSchema } from "../../lib/untrusted-schema/index.ts";
import { plainName, toolNames } from "./names.ts";
import type { McpServerDefinition } from "./options.ts";
import { usableParameters } from "./parameters.ts";
import type { Mask } from "./secrets.ts";

/** What providers take in one request. */
const MAX_TOOLS = 128;
/** Of those that a server lists, these are looked at. */
const MAX_LISTED = 10_000;
const MAX_DESCRIPTION = 4096;
const MAX_NAME = 256;

export interface ListedTool {
  readonly name: string;
  /** As the server calls it. */
  readonly original: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly annotations: ToolAnnotations;
}

export interface Listing {
  /** By name, so that what a model is sent stays the same while they do. */
  readonly tools: readonly ListedTool[];
  /** What was left out, each with its reason; no more than a few are told. */
  readonly leftOut: readonly string[];
}

export interface ListingContext {
  readonly server: string;
  readonly choice: McpServerDefinition["tools"];
  readonly mask: Mask;
}

/** Reads no more pages than it needs. Throws what reading them throws. */
export async function readListing(
  pages: AsyncIterable<readonly unknown[]>,
  { server, choice, mask }: ListingContext,
): Promise<Listing> {
  const isChosen = chooser(choice);
  const found = new Map<string, Omit<ListedTool, "name">>();
  const faults = new Faults();
  let listed = 0;
  reading: for await (const page of pages) {
    for (const raw of page) {
      if (++listed > MAX_LISTED || found.size === MAX_TOOLS) {
        faults.add(`what comes after the first ${found.size} tools: choose with \`tools\``);
        break reading;
      }
      const parsed = RawTool.safeParse(raw);
      if (!parsed.success) faults.add("something that is no tool");
      else if (found.has(parsed.data.name)) faults.add(`a second \`${parsed.data.name}\``);
      else if (isChosen(plainName(parsed.data.name))) {
        const tool = usable(parsed.data, mask);
        if ("fault" in tool) faults.add(`\`${parsed.data.name}\`: its parameters ${tool.fault}`);
        else found.set(parsed.data.name, tool);
      }
    }
  }
  const names = toolNames(server, [...found.keys()]);
  const tools = new Map([...found].map(([original, tool]) => named(names.get(original) ?? original, tool)));
  return { tools: [...tools.values()].sort(byName), leftOut: faults.told() };
}

const named = (name: string, tool: Omit<ListedTool, "name">): [string, ListedTool] => [
  name,
  { name, ...tool },
];
const byName = (a: ListedTool, b: ListedTool) => (a.name < b.name ? -1 : 1);

const Hint = z.boolean().optional().catch(undefined);
const RawTool = z.object({
  name: z.string().min(1).max(MAX_NAME),
  title: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
  inputSchema: z.unknown(),
  annotations: z
    .object({ readOnlyHint: Hint, destructiveHint: Hint, idempotentHint: Hint, openWorldHint: Hint })
    .optional()
    .catch(undefined),
});
type RawTool = z.output<typeof RawTool>;

function chooser({ include, exclude }: ListingContext["choice"]): (name: string) => boolean {
  const [included, excluded] = [include, exclude].map((globs) => globs.map((glob) => globMatcher(glob)));
  const matches = (matchers: typeof included, name: string) =>
    matchers?.some((match) => match(name)) ?? false;
  return (name) => matches(included, name) && !matches(excluded, name);
}

function usable(raw: RawTool, mask: Mask): Omit<ListedTool, "name"> | { fault: string } {
  const { name, title, description, inputSchema, annotations } = raw;
  const checked = usableParameters(inputSchema);
  if ("fault" in checked) return checked;
  const text = mask(firstChars(description ?? title ?? name, MAX_DESCRIPTION).toWellFormed());
  return {
    original: name,
    description: text,
    parameters: checked.parameters,
    annotations: annotationsOf(annotations),
  };
}

function annotationsOf(hints: RawTool["annotations"]): ToolAnnotations {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = hints ?? {};
  return omitUndefined({
    readOnly: readOnlyHint,
    idempotent: idempotentHint,
    // As the protocol has it: what only reads destroys nothing, and of anything else one must be told.
    destructive: destructiveHint ?? (readOnlyHint ? false : undefined),
    category: openWorldHint ? ("network" as const) : readOnlyHint ? ("read" as const) : undefined,
  });
}

const MAX_TOLD = 10;
const MAX_FAULT = 200;

class Faults {
  readonly #told: string[] = [];
  #count = 0;

  add(fault: string): void {
    if (this.#count++ < MAX_TOLD) this.#told.push(firstChars(fault, MAX_FAULT));
  }

  told(): string[] {
    const more = this.#count - this.#told.length;
    return more > 0 ? [...this.#told, `and ${more} more`] : this.#told;
  }
}
