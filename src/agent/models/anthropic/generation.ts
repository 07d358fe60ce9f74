// The parameters that each generation of Claude accepts. Newer generations reject some parameters:
// https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting

import { DEFAULT_MAX_TOKENS, type ModelSettings } from "../../core/model.ts";

export interface Generation {
  /**
   * `budget`: the model thinks on request, within a budget. `adaptive`: it thinks on request and decides for
   * how long. `always`: like `adaptive`, but without a request.
   */
  readonly thinking: "budget" | "adaptive" | "always";
  readonly temperature: boolean;
  /** True if the provider enforces output schemas. */
  readonly output: boolean;
}

const OLDEST = { since: 0, thinking: "budget", temperature: true, output: false } as const;

const GENERATIONS: readonly (Generation & { readonly since: number })[] = [
  // From this generation on, a thinking block is bound to the conversation before it:
  // https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
  { since: 5.1, thinking: "always", temperature: false, output: true },
  { since: 4.7, thinking: "adaptive", temperature: false, output: true },
  { since: 4.6, thinking: "adaptive", temperature: true, output: true },
  { since: 4.5, thinking: "budget", temperature: true, output: true },
  OLDEST,
];

/**
 * Parses names such as `claude-opus-4-8` and `claude-3-7-sonnet-20250219`. A name without a version counts as
 * the oldest generation.
 */
export function generationOf(model: string): Generation {
  const [, major = "0", minor = "0"] =
    /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(model) ?? [];
  const version = Number(`${major}.${minor}`);
  return GENERATIONS.find(({ since }) => version >= since) ?? OLDEST;
}

/**
 * Returns the limit of an answer, including thinking. If `max_tokens` does not exceed the tokens for
 * thinking, it limits only the answer without the thinking.
 */
export function maxTokens({ max_tokens, thinking = 0 }: ModelSettings): number {
  const limit = max_tokens ?? DEFAULT_MAX_TOKENS + thinking;
  return limit > thinking ? limit : limit + thinking;
}

/**
 * The minimum thinking budget that the provider accepts, and the minimum number of tokens for the answer in
 * addition to it.
 */
const LEAST_THINKING = 1024;
const LEAST_ANSWER = 1024;

/**
 * Reduces the settings to at most `limit` tokens, including thinking. Turns off thinking that would get too
 * few tokens.
 */
export function limited(settings: ModelSettings, limit: number | undefined): ModelSettings {
  if (limit === undefined || maxTokens(settings) <= limit) return settings;
  const { thinking, ...others } = settings;
  const room = limit - LEAST_ANSWER;
  if (thinking === undefined || room < LEAST_THINKING) return { ...others, max_tokens: limit };
  return { ...others, max_tokens: limit, thinking: Math.min(thinking, room) };
}
