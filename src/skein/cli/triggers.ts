// `skein triggers`: creates, lists and tests the triggers of the key's user on a running server.

import { readFile } from "node:fs/promises";
import { AppError } from "../../agent/core/errors.ts";
import { type Body, type Client, createClient, type NewTrigger } from "../../client/client.ts";
import { omitUndefined } from "../../lib/omit-undefined.ts";
import { tableOf } from "./table.ts";
import { t } from "./texts.ts";

interface Server {
  readonly url: string;
  readonly key: string | undefined;
}

interface PutOptions {
  readonly agent?: string | undefined;
  readonly scheme?: string | undefined;
  readonly header?: string | undefined;
  readonly prefix?: string | undefined;
  readonly input?: string | undefined;
  readonly thread?: string | undefined;
  readonly paused?: boolean | undefined;
  readonly secret?: string | undefined;
}

type Spec = Body<"PUT /triggers/{trigger_id}">;

const PAGE = 100;

function methodsOf({ url, key }: Server): Client["triggers"] {
  const headers: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return createClient({ baseUrl: url, headers }).triggers;
}

/** The server returns only a path if the operator has not set its public URL. */
const addressOf = ({ url }: Server, path: string) => (path.startsWith("/") ? `${url}${path}` : path);

export async function listTriggers(server: Server): Promise<string> {
  const { list } = methodsOf(server);
  const { states, head } = t().triggers;
  const rows: string[][] = [];
  let cursor: string | undefined;
  do {
    const page = await list({ limit: PAGE, ...omitUndefined({ cursor }) });
    for (const { id, agent, verify, paused, paused_reason, has_secret, url } of page.items) {
      const state = paused || paused_reason ? states.paused : has_secret ? states.on : states.noSecret;
      rows.push([id, agent, verify.scheme, state, addressOf(server, url)]);
    }
    cursor = page.next_cursor;
  } while (cursor !== undefined);
  return tableOf([head, ...rows]);
}

/**
 * Prints the trigger's address on the first line and a secret created by the server on the second; `note` is for
 * people.
 */
function shown(server: Server, { id, url, secret }: NewTrigger) {
  const address = addressOf(server, url);
  if (secret === undefined) return { output: address, note: t().triggers.stored(id) };
  return { output: `${address}\n${secret}`, note: t().triggers.created(id) };
}

export async function putTrigger(
  server: Server,
  id: string,
  { agent = "", scheme = "", header, prefix, input = "", secret: file, ...options }: PutOptions,
) {
  const verify = { scheme, ...omitUndefined({ header, prefix }) };
  const secret = await secretIn(file);
  // The server checks each option.
  const spec = { agent, verify, input, ...omitUndefined({ ...options, secret }) } as Spec;
  return shown(server, await methodsOf(server).put(id, spec));
}

export async function rotateTrigger(
  server: Server,
  id: string,
  { secret: file }: Pick<PutOptions, "secret">,
) {
  const secret = await secretIn(file);
  return shown(server, await methodsOf(server).rotate(id, omitUndefined({ secret })));
}

/** Other users of the machine could see a secret on the command line. */
const secretIn = async (file: string | undefined) =>
  file === undefined ? undefined : (await readFile(file, "utf8")).trim();

/** Shows the run that the delivery in a JSON file would start. */
export async function testTrigger(server: Server, id: string, file: string): Promise<string> {
  const planned = await methodsOf(server).test(id, { body: jsonIn(file, await readFile(file, "utf8")) });
  return JSON.stringify(planned, null, 2);
}

function jsonIn(file: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AppError("invalid_request", t().triggers.noJson(file), { cause: error });
  }
}

/** Lists the last 20 deliveries. The server does not store older deliveries. */
export async function listTriggerDeliveries(server: Server, id: string): Promise<string> {
  const { deliveries } = await methodsOf(server).get(id);
  const rows = deliveries.map(({ at, id = "", outcome, thread_id = "", run_id = "", reason = "" }) => [
    ...[at, id, outcome, thread_id, run_id, reason],
  ]);
  return tableOf([t().triggers.deliveryHead, ...rows]);
}

export async function deleteTrigger(server: Server, id: string): Promise<string> {
  await methodsOf(server).delete(id);
  return t().triggers.deleted(id);
}
