// Requests to a server that may be dead, asleep or about to be so: each is over within its time.

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Whether the request took effect is unknown. */
export interface Lost {
  readonly lost: string;
}

/** A response whose headers are here; its body is still to come, until `leave` is aborted. */
export interface Opened {
  readonly response: Response;
  readonly leave: AbortController;
}

export async function ask(url: string, init: RequestInit, withinMs: number): Promise<Answer | Lost> {
  const signal = AbortSignal.timeout(withinMs);
  try {
    const response = await fetch(url, { ...init, signal });
    return await answerOf(response);
  } catch (error) {
    return { lost: reasonOf(error) };
  }
}

/** The whole of a response that is no stream. */
export async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    body: text === "" ? undefined : JSON.parse(text),
  };
}

/** Resolves when the headers are here. The caller aborts `leave` when it is done. */
export async function open(url: string, init: RequestInit, withinMs: number): Promise<Opened | Lost> {
  const leave = new AbortController();
  const timer = setTimeout(() => leave.abort(), withinMs);
  try {
    return { response: await fetch(url, { ...init, signal: leave.signal }), leave };
  } catch (error) {
    return { lost: reasonOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

export function json(body: unknown, headers: Record<string, string> = {}): RequestInit {
  return {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  };
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : "";
  return `${error instanceof Error ? error.message : error}${cause}`;
}

/** The code of a problem; empty for anything else. */
export function codeOf({ body }: Answer): string {
  return typeof body === "object" && body !== null && "code" in body ? String(body.code) : "";
}
