// `skein webhooks`: creates, lists and tests the webhooks of the key's user on a running server.

import { AppError } from "../../agent/core/errors.ts";
import { type Client, createClient } from "../../client/client.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { tableOf } from "./table.ts";
import { t } from "./texts.ts";

interface Server {
  readonly url: string;
  readonly key: string | undefined;
}

interface PutOptions {
  readonly address?: string | undefined;
  readonly on?: string | undefined;
  readonly only?: string | undefined;
  readonly ordered?: boolean | undefined;
  readonly paused?: boolean | undefined;
}

type Spec = Parameters<Client["webhooks"]["put"]>[1];
type Status = NonNullable<Parameters<Client["webhooks"]["deliveries"]>[1]>["status"];

const PAGE = 100;

function methodsOf({ url, key }: Server): Client["webhooks"] {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return createClient({ baseUrl: url, headers }).webhooks;
}

export async function listWebhooks(server: Server): Promise<string> {
  const { list } = methodsOf(server);
  const rows: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await list({ limit: PAGE, ...omitUndefined({ cursor }) });
    for (const { id, url, on, paused, disabled, failing_since } of page.items) {
      const { states } = t().webhooks;
      const failing = failing_since === undefined ? states.on : `${states.failing} ${failing_since}`;
      rows.push([id, on.join(","), disabled ? states.disabled : paused ? states.paused : failing, url]);
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return tableOf([t().webhooks.head, ...rows]);
}

/** Creates or replaces a webhook. The output is only the secret; `note` is for people. */
export async function putWebhook(
  server: Server,
  id: string,
  { address = "", on = "run.ended,run.failed", only, ordered, paused }: PutOptions,
): Promise<{ readonly output: string; readonly note?: string }> {
  const agents = only?.split(",");
  // The server checks the names of the events.
  const spec = {
    url: address,
    on: on.split(",") as Spec["on"],
    ...omitUndefined({ agents, ordered, paused }),
  };
  const { secret } = await methodsOf(server).put(id, spec);
  if (secret === undefined) return { output: t().webhooks.replaced(id) };
  return { output: secret, note: t().webhooks.created(id) };
}

export async function rotateWebhook(server: Server, id: string) {
  const { secret = "" } = await methodsOf(server).rotate(id);
  return { output: secret, note: t().webhooks.rotated };
}

/** Throws `unavailable` if the receiver did not accept the sample. */
export async function testWebhook(server: Server, id: string): Promise<string> {
  const { delivered, error = "" } = await methodsOf(server).test(id);
  if (delivered) return t().webhooks.delivered;
  throw new AppError("unavailable", t().webhooks.notDelivered(error));
}

export async function deleteWebhook(server: Server, id: string): Promise<string> {
  await methodsOf(server).delete(id);
  return t().webhooks.deleted(id);
}

/** Lists the most recent deliveries. */
export async function listDeliveries(
  server: Server,
  id: string,
  status: string | undefined,
): Promise<string> {
  // The server checks the status.
  const query = { limit: PAGE, ...omitUndefined({ status: status as Status }) };
  const { items } = await methodsOf(server).deliveries(id, query);
  const rows = items.map((each) => [
    ...[each.id, each.type, each.status, String(each.attempts), each.created_at],
    ...[each.run_id ?? "", each.error ?? ""],
  ]);
  return tableOf([t().webhooks.deliveryHead, ...rows]);
}

export async function sendDelivery(server: Server, id: string, delivery: string): Promise<string> {
  await methodsOf(server).send(id, delivery);
  return t().webhooks.sent(delivery);
}
