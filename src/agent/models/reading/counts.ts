// Reads the token counts of a provider under all known names. A count never decreases within a reply.

import { isObject } from "../../../lib/json.ts";
import { NO_USAGE, searchesOf, type Usage } from "../../core/message.ts";

/** The limit of a count. No provider reports that many tokens for one call. */
const MAX_COUNT = 1e9;

export interface Counter {
  /** Adds the counts of one event. Ignores values that are not counts. */
  take(counts: unknown): void;
  readonly usage: Usage;
}

export function counter(): Counter {
  let usage: Usage = NO_USAGE;
  const beside = { input: 0, read: 0, written: 0 };

  /**
   * Reads Anthropic's counts. Anthropic counts cached tokens separately from the input and may omit counts
   * that it has already sent.
   */
  const inputBeside = (counts: Counts) => {
    beside.input = countIn(counts.input_tokens) ?? beside.input;
    beside.read = countIn(counts.cache_read_input_tokens) ?? beside.read;
    beside.written = countIn(counts.cache_creation_input_tokens) ?? beside.written;
    return beside.input + beside.read + beside.written;
  };

  return {
    take(counts) {
      if (!isObject(counts)) return;
      const prompt = countIn(counts.prompt_tokens);
      usage = higher(
        usage,
        prompt === undefined ? usageBeside(counts, inputBeside(counts)) : usageOf(counts, prompt),
      );
    },
    get usage() {
      return usage;
    },
  };
}

type Counts = Readonly<Record<string, unknown>>;

const usageBeside = (counts: Counts, input_tokens: number): Usage => ({
  input_tokens,
  output_tokens: countIn(counts.output_tokens) ?? countIn(counts.completion_tokens) ?? 0,
  cache_read_tokens: countIn(counts.cache_read_input_tokens) ?? cachedIn(counts),
  cache_write_tokens: countIn(counts.cache_creation_input_tokens) ?? 0,
  ...searchesIn(counts),
});

/** Reads OpenAI's counts, in which `prompt_tokens` includes cached tokens. */
function usageOf(counts: Counts, prompt: number): Usage {
  const { cache_write_tokens } = detailsIn(counts.prompt_tokens_details);
  const completion = countIn(counts.completion_tokens) ?? countIn(counts.output_tokens) ?? 0;
  const read = cachedIn(counts);
  // Google and xAI include thoughts only in the total.
  const hidden = (countIn(counts.total_tokens) ?? 0) - prompt - completion;
  return {
    input_tokens: Math.max(prompt, read),
    output_tokens: completion + (hidden > 0 && hidden !== read ? hidden : 0),
    cache_read_tokens: read,
    cache_write_tokens: countIn(cache_write_tokens) ?? countIn(counts.cache_creation_input_tokens) ?? 0,
    ...searchesIn(counts),
  };
}

const searchesIn = (counts: Counts) =>
  searchesOf(countIn(detailsIn(counts.server_tool_use).web_search_requests) ?? 0);

const cachedIn = (counts: Counts): number =>
  countIn(detailsIn(counts.prompt_tokens_details).cached_tokens) ??
  countIn(detailsIn(counts.input_tokens_details).cached_tokens) ??
  countIn(counts.prompt_cache_hit_tokens) ??
  countIn(counts.cache_read_input_tokens) ??
  countIn(counts.cached_tokens) ??
  0;

const detailsIn = (value: unknown): Counts => (isObject(value) ? value : {});

const higher = (a: Usage, b: Usage): Usage => ({
  input_tokens: Math.max(a.input_tokens, b.input_tokens),
  output_tokens: Math.max(a.output_tokens, b.output_tokens),
  cache_read_tokens: Math.max(a.cache_read_tokens, b.cache_read_tokens),
  cache_write_tokens: Math.max(a.cache_write_tokens, b.cache_write_tokens),
  ...searchesOf(Math.max(a.web_searches ?? 0, b.web_searches ?? 0)),
});

/**
 * Converts a token count, given as a number or as text, to an integer. Returns undefined for any other value.
 */
function countIn(value: unknown): number | undefined {
  const count = typeof value === "string" && /^\d{1,12}$/.test(value) ? Number(value) : value;
  const isCount = typeof count === "number" && count >= 0 && count <= MAX_COUNT;
  return isCount ? Math.ceil(count) : undefined;
}
