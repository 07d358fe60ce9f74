// The parameters that a Claude model accepts. Each generation has dropped some, and refuses them:
// https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting

import { DEFAULT_MAX_TOKENS, type ModelSettings } from "../../core/model.ts";

export interface Generation {
  /** `budget`: thinks on request, within a budget. `adaptive`: on request, as much as it likes. `always`: adaptive, unasked. */
  readonly thinking: "budget" | "adaptive" | "always";
  readonly temperature: boolean;
  /** Whether the provider holds it to a schema. */
  readonly output: boolean;
}

const OLDEST = { since: 0, thinking: "budget", temperature: true, output: false } as const;

const GENERATIONS: readonly (Generation & { readonly since: number })[] = [
  // From here on a thinking block is bound to the conversation before it:
  // https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
  { since: 5.1, thinking: "always", temperature: false, output: true },
  { since: 4.7, thinking: "adaptive", temperature: false, output: true },
  { since: 4.6, thinking: "adaptive", temperature: true, output: true },
  { since: 4.5, thinking: "budget", temperature: true, output: true },
  OLDEST,
];

/** Read off the name: `claude-opus-4-8`, `claude-3-7-sonnet-20250219`. A name without a version is an old one's. */
export function generationOf(model: string): Generation {
  const [, major = "0", minor = "0"] =
    /claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/.exec(model) ?? [];
  const version = Number(`${major}.${minor}`);
  return GENERATIONS.find(({ since }) => version >= since) ?? OLDEST;
}

/** Thinking counts towards the limit. One that leaves no room for an answer is taken to mean the answer alone. */
export function maxTokens({ max_tokens, thinking = 0 }: ModelSettings): number {
  const limit = max_tokens ?? DEFAULT_MAX_TOKENS + thinking;
  return limit > thinking ? limit : limit + thinking;
}

/** What the provider takes as a budget for thinking, and what an answer is left beside it. */
const LEAST_THINKING = 1024;
const LEAST_ANSWER = 1024;

/** The settings for at most `limit` tokens, thinking included. Thinking that is left too little room is switched off. */
export function limited(settings: ModelSettings, limit: number | undefined): ModelSettings {
  if (limit === undefined || maxTokens(settings) <= limit) return settings;
  const { thinking, ...others } = settings;
  const room = limit - LEAST_ANSWER;
  if (thinking === undefined || room < LEAST_THINKING) return { ...others, max_tokens: limit };
  return { ...others, max_tokens: limit, thinking: Math.min(thinking, room) };
}
