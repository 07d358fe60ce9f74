// `skein acp`: connects editors that support the Agent Client Protocol to an agent of a running server, over stdin and
// stdout. Only frames are written to stdout. The command ends when stdin closes; runs in progress continue on the
// server.

import { Readable, Writable } from "node:stream";
import {
  agent as acpAgent,
  type ClientCapabilities,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
} from "@agentclientprotocol/sdk";
import packageJson from "../../../package.json" with { type: "json" };
import { requestErrorOf } from "./errors.ts";
import { createSessions, type SessionsOptions } from "./sessions.ts";

/** Resolves with the exit code once the editor has closed stdin. */
export async function acp(options: Omit<SessionsOptions, "signal" | "log">): Promise<number> {
  const closing = new AbortController();
  const log = (message: string) => void process.stderr.write(`skein: ${message}\n`);
  const sessions = createSessions({ ...options, log, signal: closing.signal });
  let capabilities: ClientCapabilities = {};
  const inWords = failingInWords(options.url);
  const { initialize, session } = methods.agent;
  const app = acpAgent({ name: "skein" })
    .onRequest(initialize, ({ params }) => {
      capabilities = params.clientCapabilities ?? {};
      return {
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: "skein", title: "Skein", version: packageJson.version },
        agentCapabilities: {
          loadSession: true,
          promptCapabilities: { image: true, audio: false, embeddedContext: true },
          mcpCapabilities: { http: false, sse: false },
          sessionCapabilities: { list: {} },
        },
        authMethods: [],
      };
    })
    .onRequest(
      session.new,
      inWords(({ params }) => sessions.open(params)),
    )
    .onRequest(
      session.load,
      inWords(({ params, client: editor }) => sessions.load(params, { editor, capabilities })),
    )
    .onRequest(
      session.list,
      inWords(({ params }) => sessions.list(params)),
    )
    .onRequest(
      session.prompt,
      inWords(({ params, client: editor, signal }) =>
        sessions.prompt(params, { editor, capabilities, signal }),
      ),
    )
    .onNotification(session.cancel, ({ params }) => sessions.cancel(params.sessionId));
  const output = Writable.toWeb(process.stdout) as WritableStream<Uint8Array>;
  const input = Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>;
  const connection = app.connect(ndJsonStream(output, input));
  await connection.closed;
  closing.abort();
  return 0;
}

/** Wraps handlers so their errors have the protocol's shape and the messages of the server at `url`. */
const failingInWords =
  (url: string) =>
  <C, R>(handler: (context: C) => R | Promise<R>) =>
  async (context: C): Promise<R> => {
    try {
      return await handler(context);
    } catch (error) {
      throw requestErrorOf(error, url);
    }
  };
