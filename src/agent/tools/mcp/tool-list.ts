// Converts a server's list of tools to tools for models. It does not trust the list. It skips unusable tools with a reason
// and limits the size.

import { createHash } from "node:crypto";
import { z } from "zod";
import { globMatcher } from "../../../lib/glob.ts";
import type { Mask } from "../../../lib/mask.ts";
import { omitUndefined } from "../../../lib/omit-undefined.ts";
import { firstChars } from "../../../lib/text.ts";
import type { JsonSchema } from "../../../lib/untrusted-schema/index.ts";
import type { ToolAnnotations } from "../../core/tool.ts";
import { usableParameters } from "../parameters.ts";
import type { McpServerDefinition } from "./options.ts";

/** The maximum number of tools. Providers do not accept more tools in one request. */
const MAX_TOOLS = 128;
/** The maximum number of listed tools to examine. */
const MAX_LISTED = 10_000;
const MAX_DESCRIPTION = 4096;
const MAX_NAME = 256;

export interface ListedTool {
  readonly name: string;
  /** The server's name for the tool. */
  readonly original: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly annotations: ToolAnnotations;
}

export interface Listing {
  /** The tools, sorted by name. Requests to models therefore change only when the tools change. */
  readonly tools: readonly ListedTool[];
  /** The first few skipped tools, each with its reason. */
  readonly leftOut: readonly string[];
}

export interface ListingContext {
  readonly server: string;
  readonly choice: McpServerDefinition["tools"];
  /** True to trust the server's hints even if they make calls less strict. */
  readonly isTrusted: boolean;
  readonly mask: Mask;
}

/**
 * Reads a server's tools. Reads no more pages than needed. Throws the errors that occur while reading them.
 */
export async function readListing(
  pages: AsyncIterable<readonly unknown[]>,
  { server, choice, isTrusted, mask }: ListingContext,
): Promise<Listing> {
  const isChosen = chooser(choice);
  const found = new Map<string, Omit<ListedTool, "name">>();
  const faults = new Faults();
  let listed = 0;
  reading: for await (const page of pages) {
    for (const raw of page) {
      if (++listed > MAX_LISTED || found.size === MAX_TOOLS) {
        faults.add(`all tools after the first ${found.size}: select others with \`tools\``);
        break reading;
      }
      const parsed = RawTool.safeParse(raw);
      if (!parsed.success) faults.add("an entry that is not a tool");
      else if (found.has(parsed.data.name)) faults.add(`a second \`${parsed.data.name}\``);
      else if (isChosen(plainName(parsed.data.name))) {
        const tool = usable(parsed.data, { isTrusted, mask });
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

function usable(
  raw: RawTool,
  { isTrusted, mask }: Pick<ListingContext, "isTrusted" | "mask">,
): Omit<ListedTool, "name"> | { fault: string } {
  const { name, title, description, inputSchema, annotations } = raw;
  const checked = usableParameters(inputSchema);
  if ("fault" in checked) return checked;
  const text = firstChars(mask((description ?? title ?? name).toWellFormed()), MAX_DESCRIPTION);
  return {
    original: name,
    description: text,
    parameters: checked.parameters,
    annotations: annotationsOf(annotations, isTrusted),
  };
}

function annotationsOf(hints: RawTool["annotations"], isTrusted: boolean): ToolAnnotations {
  const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = hints ?? {};
  // A call that only reads may be repeated, but the server's claim that it only reads is not trusted.
  if (!isTrusted)
    return omitUndefined({ idempotent: idempotentHint || readOnlyHint, destructive: destructiveHint });
  return omitUndefined({
    readOnly: destructiveHint ? false : readOnlyHint,
    idempotent: idempotentHint,
    // In the protocol, a read-only tool is not destructive by default, and any other tool may be destructive.
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

const MAX_LENGTH = 64;
const HASH_LENGTH = 8;

/** Replaces every character that providers reject with `_`. */
export const plainName = (original: string) => original.replace(/[^A-Za-z0-9_-]/g, "_") || "_";

/**
 * Returns names of the form `mcp__<server>__<tool>`, regardless of the order. Uses the plain name if it is
 * unique and short enough, and otherwise a name that ends in a hash. `originals` has no duplicates.
 */
export function toolNames(server: string, originals: readonly string[]): ReadonlyMap<string, string> {
  const prefix = `mcp__${server}__`;
  const room = MAX_LENGTH - prefix.length;
  const sharing = Map.groupBy(originals, plainName);
  const named = originals.map((original): [string, string] => {
    const plain = plainName(original);
    const isClear = original === plain || sharing.get(plain)?.length === 1;
    if (isClear && plain.length <= room) return [original, prefix + plain];
    const hash = createHash("sha256").update(original).digest("hex").slice(0, HASH_LENGTH);
    return [original, `${prefix}${plain.slice(0, room - HASH_LENGTH - 1)}_${hash}`];
  });
  return new Map(named);
}
