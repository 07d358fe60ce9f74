// One HTTP request and its response. Silence longer than `silenceMs` counts as a lost connection.

export interface ConnectionOptions {
  readonly fetch: typeof fetch;
  /** Longest silence between two pieces of the response. */
  readonly silenceMs: number;
  /** Longest silence before the response begins, besides the time that the upload may take; default `silenceMs`. */
  readonly beginMs?: number;
}

/** An error response of the server. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  /** From `Retry-After`. */
  readonly retryAfterMs?: number;
  /** What the server says besides, such as the issues of a form. */
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

/** The response is missing or incomplete; the request may have taken effect. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

export interface Connection {
  readonly status: number;
  readonly headers: Headers;
  /** The body as it comes. Throws `ConnectionLost`. Ending the iteration closes the connection. */
  chunks(): AsyncGenerator<Uint8Array<ArrayBuffer>, void, void>;
  /** The whole body. Throws `ConnectionLost`. */
  blob(): Promise<Blob>;
  /** Throws `ConnectionLost`; `Error` for a response that is no JSON. */
  json(): Promise<unknown>;
  /** Closes the connection without reading the body. */
  close(): void;
}

/** The slowest upload that the server takes, in bytes a millisecond. */
const SLOWEST_UPLOAD = 4;

/** Throws `ProblemError`, `ConnectionLost`, or the reason of `signal` once that has aborted. */
export async function connect(
  { fetch: send, silenceMs, beginMs = silenceMs }: ConnectionOptions,
  url: string,
  init: RequestInit,
  signal?: AbortSignal,
): Promise<Connection> {
  const closing = new AbortController();
  const onAbort = () => closing.abort(signal?.reason);
  // By hand: `AbortSignal.any` is younger than the browsers and Nodes that the client supports.
  if (signal?.aborted) onAbort();
  else signal?.addEventListener("abort", onAbort, { once: true });
  const close = () => {
    signal?.removeEventListener("abort", onAbort);
    closing.abort();
  };

  /** The timer runs only during a read: a slow consumer does not make the server silent. */
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

/** Throws when a response is something else than what a Skein server sends, and closes its connection. */
export function assertType(
  { headers, close }: Pick<Connection, "headers" | "close">,
  type: string,
  name: string,
): void {
  const found = headers.get("content-type") ?? "nothing";
  if (found.startsWith(type)) return;
  close();
  throw new Error(`The response is \`${found}\`, not ${name}. Check that \`baseUrl\` is a Skein server.`);
}

/** Of a body that is a text or bytes, about. */
function bytesOf(body: RequestInit["body"]): number {
  if (typeof body === "string") return body.length;
  if (body instanceof Blob) return body.size;
  return ArrayBuffer.isView(body) || body instanceof ArrayBuffer ? body.byteLength : 0;
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
