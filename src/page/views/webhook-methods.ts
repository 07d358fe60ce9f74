// The functions of a view that manages webhooks: either the user's own or a tenant's.

import { client, may } from "../session.ts";

type OwnWebhooks = typeof client.webhooks;

export interface WebhookMethods
  extends Pick<OwnWebhooks, "list" | "create" | "rotate" | "test" | "deliveries" | "send"> {
  readonly delete: (id: string) => Promise<unknown>;
  /** Returns whether the user may change them. */
  readonly mayChange: () => boolean;
}

export const ownWebhooks = (): WebhookMethods => ({ ...client.webhooks, mayChange: () => may("run") });

/** Without a name, uses the admin's tenant. */
export function tenantWebhooks(name: string | undefined): WebhookMethods {
  const { admin } = client;
  const tenant = name === undefined ? {} : { tenant: name };
  return {
    list: (query, signal) => admin.webhooks.list({ ...query, ...tenant }, signal),
    create: (webhook) => admin.webhooks.create(webhook, tenant),
    delete: (id) => admin.webhooks.delete(id, tenant),
    rotate: (id) => admin.webhooks.rotate(id, tenant),
    test: (id) => admin.webhooks.test(id, tenant),
    deliveries: (id, query, signal) => admin.webhooks.deliveries(id, { ...query, ...tenant }, signal),
    send: (id, delivery) => admin.webhooks.send(id, delivery, tenant),
    mayChange: () => true,
  };
}
