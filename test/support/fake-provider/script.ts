// The script of the fake provider, independent of any vendor.

/** One block of a reply. Its text comes in pieces. */
export type Block =
  | { readonly type: "text"; readonly text: string; readonly cites?: readonly Page[] }
  | { readonly type: "reasoning"; readonly text: string }
  | { readonly type: "redacted" }
  | { readonly type: "call"; readonly id: string; readonly name: string; readonly json: string }
  /** A search that the provider executes, and its results. */
  | { readonly type: "search"; readonly id: string; readonly query: string }
  | {
      readonly type: "results";
      readonly id: string;
      readonly pages: readonly Page[] | { readonly error: string };
    };

export interface Page {
  readonly url: string;
  readonly title: string;
}

export type Stop = "end_turn" | "tool_use" | "max_tokens" | "refusal" | "stop_sequence" | "pause_turn";

/** A kind of refusal; each vendor has its own status and words for it. */
export type Failure =
  | "auth"
  | "rate_limit"
  | "quota"
  | "overloaded"
  | "server_error"
  | "context_overflow"
  | "too_large"
  | "not_found"
  /** The prompt is blocked for what it says. */
  | "content_filter";

export interface Counts {
  /** All of the input, the cached part included. */
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

export interface Answer {
  readonly blocks?: readonly Block[];
  /** Calls that stand together are sent piece by piece in turns. */
  readonly interleaved?: boolean;
  /** Default: `tool_use` with calls, else `end_turn`. */
  readonly stop?: Stop;
  readonly usage?: Partial<Counts>;
  /** Frames in one packet. Default 1. */
  readonly batch?: number;
  readonly delayMs?: number;
  /** Instead of an answer. */
  readonly fail?: Failure;
  /** How long to wait, where the vendor says so in the body of a failure. */
  readonly retrySeconds?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Breaks off after so many frames: destroys the socket, ends the body, sends an error or falls silent. */
  readonly breakAfter?: {
    readonly frames: number;
    readonly with: "destroy" | "end" | "silence" | "overloaded" | "rate_limit" | "server_error";
  };
  /** The data of the stream's events, sent as they are, in place of the vendor's own. */
  readonly raw?: readonly unknown[];
  /** Never answers at all. */
  readonly hang?: boolean;
}

export const say = (text: string): Block => ({ type: "text", text });
export const cited = (text: string, ...cites: readonly Page[]): Block => ({ type: "text", text, cites });
export const think = (text: string): Block => ({ type: "reasoning", text });
export const redacted = (): Block => ({ type: "redacted" });

let made = 0;

export const call = (name: string, args: unknown = {}, id = `call_${++made}`): Block => ({
  type: "call",
  id,
  name,
  json: JSON.stringify(args),
});

/** A search of the provider. An id tells the query, so that a changed one is noticed. */
export function search(query: string, pages: readonly Page[] | { readonly error: string }): [Block, Block] {
  const id = `srvtoolu_${Buffer.from(query).toString("hex")}_${++made}`;
  return [
    { type: "search", id, query },
    { type: "results", id, pages },
  ];
}

/** A call whose arguments are the model's text, JSON or not. */
export const rawCall = (name: string, json: string, id = `call_${++made}`): Block => ({
  type: "call",
  id,
  name,
  json,
});

/** An answer of so many tokens, for measuring. */
export const tokens = (count: number): Answer => ({ blocks: [say("token ".repeat(count))] });

export type Moment =
  | { readonly at: "start"; readonly index: number; readonly block: Block }
  | { readonly at: "piece"; readonly index: number; readonly block: Block; readonly piece: string }
  | { readonly at: "end"; readonly index: number; readonly block: Block };

/** The blocks as they come over time. */
export function timeline({ blocks = [], interleaved = false }: Answer): Moment[] {
  const strands = blocks.map((block, index): Moment[] => [
    { at: "start", index, block },
    ...pieces(block).map((piece) => ({ at: "piece", index, block, piece }) as const),
    { at: "end", index, block },
  ]);
  if (!interleaved) return strands.flat();
  const before = strands.filter((_, index) => blocks[index]?.type !== "call");
  const calls = strands.filter((_, index) => blocks[index]?.type === "call");
  return [...before.flat(), ...inTurns(calls)];
}

function inTurns(strands: readonly Moment[][]): Moment[] {
  const longest = Math.max(0, ...strands.map((strand) => strand.length));
  const rounds = Array.from({ length: longest }, (_, round) =>
    strands.flatMap((strand) => strand[round] ?? []),
  );
  return rounds.flat();
}

/** Text by words, as models stream it; arguments by a few characters, wherever that cuts. */
function pieces(block: Block): string[] {
  if (block.type === "redacted" || block.type === "results") return [];
  if (block.type === "search") return JSON.stringify({ query: block.query }).match(/[\s\S]{1,7}/gu) ?? [];
  if (block.type === "call") return block.json.match(/[\s\S]{1,7}/gu) ?? [];
  return block.text.match(/\S+\s*|\s+/g) ?? [];
}

export function stopOf({ stop, blocks = [] }: Answer): Stop {
  return stop ?? (blocks.some(({ type }) => type === "call") ? "tool_use" : "end_turn");
}

export function countsOf({ usage = {} }: Answer): Counts {
  return { ...{ input: 10, output: 5, cacheRead: 0, cacheWrite: 0 }, ...usage };
}
