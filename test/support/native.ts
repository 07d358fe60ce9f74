// The server's own routes, which say what came of what a stock client did.

interface Run {
  readonly id: string;
  readonly status: string;
}

async function itemsOf<T>(url: string, path: string, headers: Record<string, string> = {}): Promise<T[]> {
  const response = await fetch(url + path, { headers });
  return ((await response.json()) as { items: T[] }).items;
}

export const threadsOf = (url: string, headers?: Record<string, string>) =>
  itemsOf<{ id: string }>(url, "/threads", headers);

/** The newest first. */
export const runsOf = (url: string, thread: string, headers?: Record<string, string>) =>
  itemsOf<Run>(url, `/threads/${thread}/runs`, headers);

export const statusesOf = async (url: string, thread: string) =>
  (await runsOf(url, thread)).map(({ status }) => status);

/** Of the runs of all threads of a user. */
export async function allStatuses(url: string, headers?: Record<string, string>): Promise<string[]> {
  const threads = await threadsOf(url, headers);
  const runs = await Promise.all(threads.map(({ id }) => runsOf(url, id, headers)));
  return runs.flat().map(({ status }) => status);
}

/** What is said on a thread, without the results of tools. */
export const saidIn = async (url: string, thread: string) =>
  (await itemsOf<{ role: string; content: string }>(url, `/threads/${thread}/messages`))
    .filter(({ role }) => role !== "tool")
    .map(({ content }) => content);

/** A request as bytes, of a client that is none of the stock ones. */
export const postJson = (url: string, body: unknown, headers: Record<string, string> = {}) =>
  fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });

/** Sends requests to a server, with these headers: JSON both ways, or nothing. */
export const requestsTo =
  (url: string, usual: Record<string, string> = {}) =>
  async (method: string, path: string, body?: unknown, more: Record<string, string> = {}) => {
    const json = body === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(url + path, {
      method,
      headers: { ...usual, ...json, ...more },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    // Tests know what they asked for.
    return { status: response.status, headers: response.headers, body: text ? JSON.parse(text) : {} };
  };
