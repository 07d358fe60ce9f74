// A plugin for server.yaml: authentication, and an additional route. Restart the server after a change.

import { timingSafeEqual } from "node:crypto";
import { definePlugin, type OwnScheme, type PluginRoutes, z } from "skein";

/** A real plugin would query a database or a directory. */
const STAFF = [
  { user: "ada", badge: "badge-of-ada", scopes: ["run", "read"] },
  { user: "bob", badge: "badge-of-bob", scopes: ["read"] },
] as const;

const isSame = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

const auth: OwnScheme = {
  name: "badge",
  authenticate(request) {
    const badge = request.header("x-badge") ?? "";
    const found = STAFF.find((each) => isSame(each.badge, badge));
    return found && { tenant: "shop", user: found.user, scopes: found.scopes };
  },
};

/** Routes below /plugins/company. `GET` requires the scope `read`, and every other method requires `run`. */
const routes: PluginRoutes = async (app, { callerOf }) => {
  const orders: { user: string; yarn: string }[] = [];
  const Order = z.strictObject({ yarn: z.string().min(1).max(100) });

  app.get("/orders", async (request) => orders.filter(({ user }) => user === callerOf(request).user));
  app.post<{ Body: z.infer<typeof Order> }>(
    "/orders",
    { schema: { body: Order } },
    async (request, reply) => {
      if (orders.length >= 1000) return reply.code(429).send({ detail: "The book of orders is full." });
      orders.push({ user: callerOf(request).user, yarn: request.body.yarn });
      return reply.code(201).send({ orders: orders.length });
    },
  );
};

export default definePlugin({ name: "company", auth, routes });
