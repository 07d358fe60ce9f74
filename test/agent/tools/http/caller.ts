// A run that calls one HTTP tool, on a server of the test's own.

import type { ServerResponse } from "node:http";
import type { ToolMessage } from "../../../../src/agent/core/message.ts";
import { createHttpTools, type HttpToolServices } from "../../../../src/agent/tools/http/index.ts";
import { HttpToolRegistration, newHttpTool } from "../../../../src/agent/tools/http/registration.ts";
import { hostList } from "../../../../src/lib/hosts.ts";
import { createPublicFetch } from "../../../../src/lib/ssrf-safe-fetch/index.ts";
import { type Play, type Played, play } from "../../../support/agent.ts";
import { type Heard, json } from "../../../support/hostile.ts";

export const fetch = createPublicFetch({ allow: hostList("127.0.0.1") });

/** As `POST /tools` makes it. */
export const registered = (callback_url: string, more: object = {}) =>
  newHttpTool(
    HttpToolRegistration.parse({
      ...{ name: "weather", description: "Says the weather.", callback_url },
      parameters: {
        type: "object",
        properties: { city: { type: "string" } },
        required: ["city"],
        additionalProperties: false,
      },
      ...more,
    }),
    { isTaken: () => false, isRefused: async () => false },
  );

export interface Called extends Played {
  /** What the model got to read: the first of the thread's tool messages. */
  readonly answer: ToolMessage | undefined;
}

export interface CallOptions extends Pick<Play, "input" | "onEvent"> {
  /** More of the registration. */
  readonly tool?: object;
  readonly services?: Partial<HttpToolServices>;
  readonly args?: Record<string, unknown>;
}

export async function call(url: string, options: CallOptions = {}): Promise<Called> {
  const { tool = {}, services = {}, args = { city: "Oslo" }, ...rest } = options;
  const tools = await createHttpTools([await registered(url, tool)], { fetch, ...services });
  const script = [{ call: [{ tool: "weather", args }] }, { say: "It is so." }];
  const played = await play({ script, tools, ...rest });
  return { ...played, answer: answerOf(played) };
}

export const answerOf = ({ messages }: Played) => messages.find((message) => message.role === "tool");

/** What a server answers that knows the weather. */
export const OK = json({ result: "4 degrees" });

/** What one answers that sends a page, or elsewhere. */
export function httpStatus(status: number, text: string) {
  return (_: Heard, response: ServerResponse) =>
    response
      .writeHead(status, { "content-type": "text/html", location: "http://127.0.0.1/secret" })
      .end(text);
}
