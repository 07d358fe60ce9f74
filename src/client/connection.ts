// One HTTP request and its response. Silence longer than `silenceMs` counts as a lost connection.

export interface ConnectionOptions {
  readonly fetch: typeof fetch;
  readonly silenceMs: number;
}

/** An error response of the server. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  /** From `Retry-After`. */
  readonly retryAfterMs?: number;
  constructor(status: number, problem: { code?: string; detail?: string }, retryAfterMs?: number) {
    super(problem.detail ?? `HTTP ${status}`);
    this.name = "ProblemError";
    this.status = status;
    this.code = problem.code ?? "unknown";
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
  }
}

/** The response is missing or incomplete; the request may have taken effect. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

export interface Connection {
  readonly status: number;
  readonly headers: Headers;
  /** The body as it comes. Throws `ConnectionLost`. Ending the iteration closes the connection. */
  chunks(): AsyncGenerator<Uint8Array, void, void>;
  json(): Promise<unknown>;
  /** Closes the connection without reading the body. */
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

  /** The timer runs only during a read: a slow consumer does not make the server silent. */
  async function withSilenceLimit<T>(work: Promise<T>): Promise<T> {
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
  const response = await withSilenceLimit(send(url, { ...init, signal: ended }));
  if (!response.ok) {
    const problem = (await withSilenceLimit(response.json()).catch(() => ({}))) as {
      code?: string;
      detail?: string;
    };
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
          const { done, value } = reader
            ? await withSilenceLimit(reader.read())
            : { done: true, value: undefined };
          if (done || !value) return;
          yield value;
        }
      } finally {
        closing.abort();
      }
    },
    json: () => withSilenceLimit(response.json()),
    close: () => closing.abort(),
  };
}

/** Node's `fetch` puts the reason in `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}

/** Accepts seconds or a date. */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
