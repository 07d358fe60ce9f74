// Sends one HTTP request and reads its response. Silence longer than `silenceMs` counts as a lost connection.

export interface ConnectionOptions {
  readonly fetch: typeof fetch;
  /** The longest silence between two pieces of the response, in milliseconds. */
  readonly silenceMs: number;
  /**
   * The longest silence before the response begins, in milliseconds, plus the time for the upload. Defaults to
   * `silenceMs`.
   */
  readonly beginMs?: number;
}

/** An error response from the server. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  /** The time from the `Retry-After` header. */
  readonly retryAfterMs?: number;
  /** Further data about the error, for example the issues of an invalid field. */
  readonly details?: Readonly<Record<string, unknown>>;
  constructor(status: number, problem: Problem, retryAfterMs?: number) {
    super(problem.detail ?? `HTTP ${status}`);
    this.name = "ProblemError";
    this.status = status;
    this.code = problem.code ?? "unknown";
    if (retryAfterMs !== undefined) this.retryAfterMs = retryAfterMs;
    if (problem.details !== undefined) this.details = problem.details;
  }
}

interface Problem {
  readonly code?: string;
  readonly detail?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Thrown if the response is missing or incomplete. The server may still have processed the request. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

export interface HttpConnection {
  readonly status: number;
  readonly headers: Headers;
  /** Yields the body in chunks as they arrive. Throws `ConnectionLost`. Leaving the loop closes the connection. */
  chunks(): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void>;
  /** Reads the whole body. Throws `ConnectionLost`. */
  blob(): Promise<Blob>;
  /** Parses the body. Throws `ConnectionLost`, and `Error` for a body that is not JSON. */
  json(): Promise<unknown>;
  /** Closes the connection without reading the body. */
  close(): void;
}

/** The slowest upload that the server accepts, in bytes per millisecond. */
const SLOWEST_UPLOAD = 4;

/** Throws `ProblemError`, `ConnectionLost`, or the reason of `signal` after it has aborted. */
export async function connect(
  { fetch: send, silenceMs, beginMs = silenceMs }: ConnectionOptions,
  url: string,
  init: RequestInit,
  signal?: AbortSignal,
): Promise<HttpConnection> {
  const closing = new AbortController();
  const onAbort = () => closing.abort(signal?.reason);
  // Does not use `AbortSignal.any`, because some supported browsers and Node versions do not have it.
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const close = () => {
    signal?.removeEventListener("abort", onAbort);
    closing.abort();
  };

  /** The timer runs only during a read, so a slow reader does not look like a silent server. */
  async function withSilenceLimit<T>(work: Promise<T>, ms = silenceMs): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const silence = new Promise<never>((_, reject) => {
      const lost = () => reject(new ConnectionLost(`The server sent nothing for ${ms} ms.`));
      timer = setTimeout(lost, ms);
    });
    try {
      return await Promise.race([work, silence]);
    } catch (error) {
      close();
      signal?.throwIfAborted();
      if (error instanceof ConnectionLost) throw error;
      throw new ConnectionLost(`The connection failed: ${reasonOf(error)}`, { cause: error });
    } finally {
      clearTimeout(timer);
    }
  }

  const longestBegin = beginMs + bytesOf(init.body) / SLOWEST_UPLOAD;
  const response = await withSilenceLimit(send(url, { ...init, signal: closing.signal }), longestBegin);

  async function* chunks() {
    const reader = response.body?.getReader();
    try {
      for (;;) {
        const { done, value } = reader
          ? await withSilenceLimit(reader.read())
          : { done: true, value: undefined };
        if (done || !value) return;
        yield value as Uint8Array<ArrayBuffer>;
      }
    } finally {
      close();
    }
  }

  async function blob() {
    const parts: Uint8Array<ArrayBuffer>[] = [];
    for await (const chunk of chunks()) parts.push(chunk);
    return new Blob(parts, { type: response.headers.get("content-type") ?? "" });
  }

  if (!response.ok) {
    const problem = (await blob()
      .then((body) => body.text())
      .then(JSON.parse)
      .catch(() => ({}))) as Problem;
    signal?.throwIfAborted();
    throw new ProblemError(response.status, problem, retryAfter(response.headers));
  }
  const { status, headers } = response;
  return {
    status,
    headers,
    chunks,
    blob,
    async json() {
      assertType({ headers, close }, "application/json", "JSON");
      return JSON.parse(await (await blob()).text());
    },
    close,
  };
}

/** Throws and closes the connection if the response has a type that no Skein server sends. */
export function assertType(
  { headers, close }: Pick<HttpConnection, "headers" | "close">,
  type: string,
  name: string,
): void {
  const found = headers.get("content-type") ?? "nothing";
  if (found.startsWith(type)) return;
  close();
  throw new Error(`The response is \`${found}\`, not ${name}. Check that \`baseUrl\` is a Skein server.`);
}

/** Returns the approximate size of a body in bytes. */
function bytesOf(body: RequestInit["body"]): number {
  if (typeof body === "string") return body.length;
  if (body instanceof Blob) return body.size;
  return ArrayBuffer.isView(body) || body instanceof ArrayBuffer ? body.byteLength : 0;
}

/** Node's `fetch` puts the reason into `cause`. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message || error.message : error.message;
}

/** Reads the `Retry-After` header, which contains seconds or a date. */
function retryAfter(headers: Headers): number | undefined {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
