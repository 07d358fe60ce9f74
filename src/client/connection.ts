// One request of the client and its answer. A connection that dies without a word is noticed by its silence.

export interface ConnectionOptions {
  readonly fetch: typeof fetch;
  /** How long the server may send nothing before the connection counts as lost, in ms. */
  readonly silenceMs: number;
}

/** What the server refused, with its code. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  /** How long the server asks to wait before the next attempt. */
  readonly retryAfterMs?: number;
  constructor(status: number, problem: { code?: string; detail?: string }, retryAfterMs?: number) {
    super(problem.detail ?? `HTTP ${status}`);
    this.name = "ProblemError";
    this.status = status;
    this.code = problem.code ?? "unknown";
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** There was no answer, or it broke off: whether the request had an effect is not known. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

export interface Connection {
  readonly status: number;
  readonly headers: Headers;
  /** The body as it comes. Throws `ConnectionLost`. Ending the iteration closes the connection. */
  chunks(): AsyncGenerator<Uint8Array, void, void>;
  json(): Promise<unknown>;
  /** Ends it without reading the body. */
  close(): void;
}

/** Throws `ProblemError`, `ConnectionLost`, or the reason of `signal` once that has aborted. */
export async function connect(
  options: ConnectionOptions,
  url: string,
  init: RequestInit,
  signal?: AbortSignal,
): Promise<Connection> {
  const closing = new AbortController();
  const { fetch: send, silenceMs } = options;

  /** The clock runs only while something is waited for: a slow reader of the events does not make the server silent. */
  async function heard<T>(work: Promise<T>): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_, reject) => {
      const lost = () => reject(new ConnectionLost(`The server sent nothing for ${silenceMs} ms.`));
      timer = setTimeout(lost, silenceMs);
    });
    try {
      return await Promise.race([work, silence]);
    } catch (error) {
      closing.abort();
      signal?.throwIfAborted();
      if (error instanceof ConnectionLost) throw error;
      throw new ConnectionLost(`The connection failed: ${reasonOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  const ended = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
  const response = await heard(send(url, { ...init, signal: ended }));
  if (!response.ok) {
    const problem = (await heard(response.json()).catch(() => ({}))) as { code?: string; detail?: string };
    signal?.throwIfAborted();
    throw new ProblemError(response.status, problem, retryAfter(response.headers));
  }
  return {
    status: response.status,
    headers: response.headers,
    async *chunks() {
      const reader = response.body?.getReader();
      try {
        for (;;) {
          const { done, value } = reader ? await heard(reader.read()) : { done: true, value: undefined };
          if (done || !value) return;
          yield value;
        }
      } finally {
        closing.abort();
      }
    },
    json: () => heard(response.json()),
    close: () => closing.abort(),
  };
}

/** What `fetch` throws says little itself; Node's has the reason as its cause. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}

/** In seconds, or as a date. */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
