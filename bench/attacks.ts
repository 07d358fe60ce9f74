// Requests with which one tenant tries to keep another one waiting. Each attack takes seconds. It does not matter
// whether its requests are accepted.

import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/** Sends a request as the attacker. The body is JSON. The response is read to its end. */
export type Send = (method: string, path: string, body?: string) => Promise<string>;

export interface Attacker {
  readonly send: Send;
  /** Sends a request on its own connection and never reads the response. Returns a function that closes the connection. */
  askAndIgnore(path: string): () => void;
}

export interface Attack {
  readonly name: string;
  /** Sends the requests that the attack needs before the measurement starts. */
  prepare?(attacker: Attacker): Promise<void>;
  perform(attacker: Attacker): Promise<void>;
}

export function attackerOn(port: number, headers: Readonly<Record<string, string>>): Attacker {
  return {
    async send(method, path, body) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, {
        method,
        headers: { ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        ...(body === undefined ? {} : { body }),
      });
      return response.text();
    },
    askAndIgnore(path) {
      const socket = connect(port, "127.0.0.1").pause();
      socket.on("error", () => {}); // the server may close it
      const lines = Object.entries({ host: `127.0.0.1:${port}`, ...headers }).map((pair) => pair.join(": "));
      socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`);
      return () => socket.destroy();
    },
  };
}

const times = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

const record = <T>(count: number, value: (index: number) => T): Record<string, T> =>
  Object.fromEntries(times(count, (index) => [`k${index}`, value(index)]));

/** Returns a schema with an expression at each of `parts` positions. */
const schema = (parts: number) => ({
  type: "object",
  properties: record(parts - 1, (index) => ({ pattern: `x${index}` })),
});

const run = (fields: object) => JSON.stringify({ input: "bench 1 0 1 0 0.", background: true, ...fields });

const clientTools = (count: number, parts: number) =>
  times(count, (index) => ({ name: `c${index}`, description: "d", parameters: schema(parts) }));

const KEYS = 60_000;
const manyKeys = JSON.stringify(record(KEYS, () => 1));
const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;
const MEGABYTE = 1024 * 1024;
const IMAGE = Buffer.alloc((MEGABYTE * 5) / 8).toString("base64");

async function registerTools({ send }: Attacker, fields: (index: number) => object): Promise<void> {
  for (let index = 0; index < 100; index++)
    await send(
      "POST",
      "/tools",
      JSON.stringify({
        name: `t${index}`,
        description: "d",
        parameters: { type: "object" },
        callback_url: "https://example.com/",
        ...fields(index),
      }),
    );
}

async function fatten({ send }: Attacker): Promise<void> {
  const image = { type: "image", media_type: "image/png", data: IMAGE };
  for (let index = 0; index < 20; index++) {
    const content = [image, { type: "text", text: "bench 1 0 1 0 0." }];
    await send("POST", "/threads/fat/runs", run({ input: undefined, messages: [{ role: "user", content }] }));
    await sleep(50);
  }
}

export const ATTACKS: readonly Attack[] = [
  {
    name: "runs with 64 large schemas",
    async perform({ send }) {
      const body = run({ tools: clientTools(64, 490) });
      await Promise.all(times(6, (index) => send("POST", `/threads/schemas-${index}/runs`, body)));
    },
  },
  {
    name: "runs with as many schemas as are taken",
    async perform({ send }) {
      const bodies = times(12, (index) => {
        // A position with a short expression counts as three parts.
        const tools = index % 2 === 0 ? clientTools(6, 27) : clientTools(50, 3);
        for (const tool of tools) tool.parameters.properties[`own${index}`] = { pattern: `y${index}` };
        return run({ tools });
      });
      await Promise.all(bodies.map((body, index) => send("POST", `/threads/most-${index}/runs`, body)));
    },
  },
  {
    name: "registrations of large schemas",
    async perform({ send }) {
      const bodies = times(12, (index) => {
        const parameters = schema(65);
        parameters.properties.own = { pattern: `z${index}` };
        const tool = { name: `r${index}`, description: "d", callback_url: "https://example.com/" };
        return JSON.stringify({ ...tool, parameters });
      });
      await Promise.all(bodies.map((body) => send("POST", "/tools", body)));
    },
  },
  {
    name: "tools for 50 patterns of agents each",
    prepare: (attacker) =>
      registerTools(attacker, (index) => ({ agents: times(50, (at) => `{a,b}*-${index}-${at}-*`) })),
    async perform({ send }) {
      await Promise.all(times(8, (index) => send("POST", `/threads/globs-${index}/runs`, run({}))));
      await Promise.all(times(8, () => send("GET", "/agents")));
    },
  },
  {
    name: "lists of large tools",
    prepare: (attacker) =>
      registerTools(attacker, () => ({
        parameters: { type: "object", description: "d".repeat(60_000) },
      })),
    async perform({ send }) {
      await Promise.all(times(10, () => send("GET", "/tools")));
      await Promise.all(times(10, () => send("GET", "/agents")));
      await Promise.all(times(8, (index) => send("POST", `/threads/large-${index}/runs`, run({}))));
    },
  },
  {
    name: "results of 60,000 keys for an unknown token",
    async perform({ send }) {
      await Promise.all(times(20, () => send("POST", "/tool-results/tr_unknown", manyKeys)));
    },
  },
  {
    name: "bodies of 60,000 keys",
    async perform({ send }) {
      const bodies = [
        ["POST", "/threads/keys/runs", run({ metadata: record(KEYS, () => 1) })],
        ["POST", "/threads/keys/runs", manyKeys],
        ["POST", "/threads", manyKeys],
        ["POST", "/threads", JSON.stringify({ metadata: record(KEYS, () => 1) })],
        ["PATCH", "/agents/bench/overrides", JSON.stringify({ hooks: record(KEYS, () => true) })],
        ["POST", "/tools", manyKeys],
        [
          "POST",
          "/threads/keys/runs",
          run({ tools: [{ name: "x", description: "d", parameters: record(KEYS, () => 1) }] }),
        ],
      ] as const;
      await Promise.all(
        bodies.flatMap((body) => [body, body]).map(([method, path, body]) => send(method, path, body)),
      );
    },
  },
  {
    name: "bodies with 400,000 faults",
    async perform({ send }) {
      const list = (item: string) =>
        `[${Array(Math.floor(MEGABYTE / (item.length + 1)) - 100)
          .fill(item)
          .join(",")}]`;
      const bodies = [
        list("1"),
        list('""'),
        list("{}"),
        `{"messages":${list("1")}}`,
        `{"tools":${list("{}")}}`,
        nested(200_000),
      ];
      await Promise.all([...bodies, ...bodies].map((body) => send("POST", "/threads/faults/runs", body)));
      const metadata = JSON.stringify({ metadata: record(KEYS, () => null) });
      await Promise.all(times(4, () => send("POST", "/threads", metadata)));
    },
  },
  {
    name: "the largest bodies",
    async perform({ send }) {
      const input = `bench 1 0 1 0 0. ${"word ".repeat(MEGABYTE / 5 - 100)}`;
      await Promise.all(times(12, (index) => send("POST", `/threads/largest-${index}/runs`, run({ input }))));
    },
  },
  {
    name: "messages and forks of a fat thread",
    prepare: fatten,
    async perform({ send }) {
      await Promise.all(times(8, () => send("GET", "/threads/fat/messages")));
      await Promise.all(times(8, () => send("GET", "/threads/fat/state")));
      await Promise.all(times(8, () => send("POST", "/threads/fat/fork", "{}")));
    },
  },
  {
    name: "runs that replace no message of a fat thread",
    async perform({ send }) {
      await Promise.all(times(10, () => send("POST", "/threads/fat/runs", run({ replaces: "msg_none" }))));
    },
  },
  {
    name: "60 unread answers",
    async perform({ askAndIgnore }) {
      const closes = times(60, () => askAndIgnore("/threads/fat/messages"));
      await sleep(3000);
      for (const close of closes) close();
    },
  },
  {
    name: "a run that delegates 128 tasks",
    async perform({ send }) {
      await send("POST", "/threads/delegates/runs", run({ agent: "delegating" }));
      await sleep(3000);
    },
  },
];
