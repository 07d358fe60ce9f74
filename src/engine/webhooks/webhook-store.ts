// Stores the webhooks of users and tenants as documents.

import { change, type Documents } from "../../agent/core/documents.ts";
import { AppError } from "../../agent/core/errors.ts";
import type { Page } from "../../agent/core/stores.ts";
import { randomId } from "../../lib/random-id.ts";
import type { KnownWebhooks } from "./known-webhooks.ts";
import {
  type Keeper,
  noWebhook,
  parsedWebhook,
  rotated,
  type Webhook,
  type WebhookSpec,
  webhookOf,
  webhooksOf,
} from "./webhook.ts";

/** A webhook and the version of its document. */
export interface VersionedWebhook {
  readonly webhook: Webhook;
  readonly version: string;
}

/**
 * Throws `precondition_failed` unless the caller can replace this version. Undefined means that the webhook does not
 * exist.
 */
export type Precondition = (version: string | undefined) => void;

export interface WebhookStore {
  /**
   * Creates or replaces a webhook. A replaced webhook keeps its secret. `isNew` is true if the webhook, and therefore
   * its secret, is new. Throws the errors of `precondition`, and `limit_exceeded` if there are too many webhooks.
   */
  put(
    keeper: Keeper,
    id: string,
    spec: WebhookSpec,
    precondition?: Precondition,
  ): Promise<VersionedWebhook & { readonly isNew: boolean }>;
  get(keeper: Keeper, id: string): Promise<VersionedWebhook | undefined>;
  /** Returns the webhooks, sorted by id. */
  list(
    keeper: Keeper,
    page: { readonly limit: number; readonly cursor?: string | undefined },
  ): Promise<Page<Webhook>>;
  /** Replaces the webhook's secret. Throws `not_found`. */
  rotate(keeper: Keeper, id: string): Promise<VersionedWebhook>;
  /** Throws `not_found` and the errors of `precondition`. */
  delete(keeper: Keeper, id: string, precondition?: Precondition): Promise<void>;
  /**
   * Replaces a webhook with the result of `update`, and returns the new webhook. If `update` returns undefined, writes
   * nothing.
   */
  update(
    keeper: Keeper,
    id: string,
    update: (before: Webhook) => Webhook | undefined,
  ): Promise<Webhook | undefined>;
}

export const newWebhookId = () => `wh_${randomId()}`;

/** `maxWebhooks` is the maximum per user, and per tenant. */
export function createWebhookStore(
  documents: Documents,
  known: KnownWebhooks,
  maxWebhooks: number,
): WebhookStore {
  const replace = async (keeper: Keeper, id: string, next: Replacement) => {
    const written = await replaced(documents, keeper, id, next);
    known.forget(keeper);
    return written;
  };

  return {
    async put(keeper, id, spec, precondition = () => {}) {
      await known.add(keeper.tenant);
      const limit = { count: maxWebhooks, error: () => tooMany(maxWebhooks) };
      const written = await change(
        documents,
        { collection: webhooksOf(keeper), keys: [id], limit },
        ({ found: [found], now, version }) => {
          precondition(found?.version);
          const webhook = webhookOf(id, spec, found && parsedWebhook(found.body), now);
          const writes = [{ key: id, seen: found?.version, body: JSON.stringify(webhook) }];
          return { writes, result: { webhook, version, isNew: found === undefined } };
        },
      );
      known.forget(keeper);
      return written;
    },
    async get(keeper, id) {
      const [found] = (await documents.read(webhooksOf(keeper), [id])).found;
      return found && { webhook: parsedWebhook(found.body), version: found.version };
    },
    async list(keeper, page) {
      const { items, ...rest } = await documents.page(webhooksOf(keeper), { order: "key", ...page });
      return { ...rest, items: items.map(({ body }) => parsedWebhook(body)) };
    },
    async rotate(keeper, id) {
      const written = await replace(keeper, id, rotated);
      if (!written) throw noWebhook(id);
      return written;
    },
    async delete(keeper, id, precondition = () => {}) {
      await change(documents, { collection: webhooksOf(keeper), keys: [id] }, ({ found: [found] }) => {
        if (!found) throw noWebhook(id);
        precondition(found.version);
        return { writes: [{ key: id, seen: found.version, body: undefined }], result: undefined };
      });
      known.forget(keeper);
    },
    update: async (keeper, id, update) => (await replace(keeper, id, update))?.webhook,
  };
}

const tooMany = (limit: number) =>
  new AppError("limit_exceeded", `There are already ${limit} webhooks. Delete one first.`, {
    details: { limit: "webhooks", most: limit },
  });

/** Returns the new state of a webhook, or undefined to leave it unchanged. */
type Replacement = (before: Webhook, now: number) => Webhook | undefined;

const replaced = (
  documents: Documents,
  keeper: Keeper,
  id: string,
  next: Replacement,
): Promise<VersionedWebhook | undefined> =>
  change(documents, { collection: webhooksOf(keeper), keys: [id] }, ({ found: [found], now, version }) => {
    const webhook = found && next(parsedWebhook(found.body), now);
    if (!found || !webhook) return { result: undefined };
    const writes = [{ key: id, seen: found.version, body: JSON.stringify(webhook) }];
    return { writes, result: { webhook, version } };
  });
