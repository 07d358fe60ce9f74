// Slack as a plugin for server.yaml. People mention the app or write to it, and an agent answers in their thread.

import { definePlugin, type PluginRoutes } from "skein";
import { conversations } from "./conversation.ts";
import { Delivery, Press, saidIn } from "./payloads.ts";
import { isFromSlack } from "./signature.ts";
import { slackCaller } from "./web-api.ts";

const setting = (name: string): string => {
  const value = process.env[name];
  if (!value) throw new Error(`set ${name}, as README.md says`);
  return value;
};

const routes: PluginRoutes = async (app, { fetchAs }) => {
  const { SLACK_API_URL, SLACK_TENANT, SLACK_AGENT, SLACK_PACE_MS } = process.env;
  const secret = setting("SLACK_SIGNING_SECRET");
  const closing = new AbortController();
  const onError = (err: unknown) => {
    if (!closing.signal.aborted) app.log.warn({ err }, "a message could not be written to Slack");
  };
  const { receive, press } = conversations({
    call: slackCaller(setting("SLACK_BOT_TOKEN"), SLACK_API_URL ?? "https://slack.com/api/"),
    tenant: SLACK_TENANT ?? "default",
    agent: SLACK_AGENT,
    everyMs: Number(SLACK_PACE_MS ?? 1_000),
    ...{ fetchAs, closing: closing.signal, onError },
  });
  app.addHook("preClose", async () => closing.abort());

  // Slack signs the bytes of the body.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "buffer" }, async (_request: unknown, body: Buffer) => body);
  app.addHook<{ Body: unknown }>("preHandler", async ({ body, headers }, reply) => {
    const isSigned = body instanceof Buffer && isFromSlack(secret, headers, body);
    return isSigned ? undefined : reply.code(401).send({ detail: "Slack has not signed this request." });
  });

  app.post<{ Body: Buffer }>("/events", { config: { access: "public" } }, async ({ body }, reply) => {
    const delivery = Delivery.safeParse(read(body.toString())).data;
    if (!delivery) return { ignored: "an unknown payload" };
    if (delivery.type === "url_verification") return { challenge: delivery.challenge };
    const said = saidIn(delivery);
    if (typeof said === "string") return { ignored: said };
    return (await receive(said)) === "later" ? reply.code(503).send({}) : {};
  });

  app.post<{ Body: Buffer }>("/presses", { config: { access: "public" } }, async ({ body }, reply) => {
    const payload = new URLSearchParams(body.toString()).get("payload") ?? "";
    const pressed = Press.safeParse(read(payload)).data;
    if (pressed) void press(pressed).catch(onError);
    return reply.send();
  });
};

function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export default definePlugin({ name: "slack", routes });
