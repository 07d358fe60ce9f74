// The answer of the fake provider, written into the user's message. It therefore passes through any server, and one
// provider serves every scenario.

export interface Script {
  /** The length of the answer. */
  readonly tokens: number;
  /** The pause between tokens. 0: as fast as the reader takes them. */
  readonly delayMs: number;
  /** The number of tokens in one packet. */
  readonly batch: number;
  /** The number of answers that call a tool before the answer with text. */
  readonly calls: number;
  /** True if each token contains the time at which it was sent (see `ageMs`). */
  readonly stamped: boolean;
}

export const script = (parts: Partial<Script>): Script => ({
  ...{ tokens: 200, delayMs: 0, batch: 1, calls: 0, stamped: false },
  ...parts,
});

export function inputOf({ tokens, delayMs, batch, calls, stamped }: Script): string {
  return `bench ${tokens} ${delayMs} ${batch} ${calls} ${Number(stamped)}.`;
}

/** Returns the newest script in a model request, and where it ends. Throws if there is none. */
export function scriptIn(body: string): { script: Script; end: number } {
  const start = body.lastIndexOf("bench ");
  const end = body.indexOf(".", start);
  const numbers = body.slice(start, end).split(" ").slice(1).map(Number);
  const [tokens = 0, delayMs = 0, batch = 1, calls = 0, stamped = 0] = numbers;
  if (start === -1 || numbers.length !== 5 || numbers.some(Number.isNaN))
    throw new Error(`There is no script in this request: ${body.slice(0, 500)}`);
  return { script: { tokens, delayMs, batch, calls, stamped: stamped === 1 }, end };
}

const TOKEN = "token ";
const DIGITS = 9;
const WRAP = 10 ** DIGITS;

/** Returns the text of the next token. All tokens of a script have the same length, so joined ones can be separated. */
export const tokenOf = ({ stamped }: Script) =>
  stamped ? `${clock().toString().padStart(DIGITS, "0")} ` : TOKEN;
export const lengthOf = ({ stamped }: Script) => (stamped ? DIGITS + 1 : TOKEN.length);

/** Returns the age of the stamped token in `text` at the position `at`. */
export function ageMs(text: string, at: number): number {
  const sent = Number.parseInt(text.slice(at, at + DIGITS), 10);
  return ((clock() - sent + WRAP) % WRAP) / 1000;
}

/** Returns microseconds, which are the same for all processes of a machine. Wraps around every 1,000 s. */
function clock(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return (seconds % 1000) * 1e6 + Math.floor(nanoseconds / 1000);
}
