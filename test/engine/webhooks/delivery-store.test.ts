import { expect, onTestFinished, test } from "vitest";
import { createMemoryStores } from "../../../src/engine/stores/memory/index.ts";
import { Delivery } from "../../../src/engine/webhooks/delivery.ts";
import { createDeliveryStore, deliveriesOf } from "../../../src/engine/webhooks/delivery-store.ts";

const ADA = { tenant: "acme", user: "ada" };
const MOST = 1_000;

test("a new delivery replaces the oldest tenth of a user's settled deliveries if there are 1,000", async () => {
  const stores = createMemoryStores({});
  onTestFinished(() => stores.close());
  const deliveries = createDeliveryStore(stores.documents);
  const keep = (at: number, state: Delivery["state"]) => {
    const about = { id: `e${at}`, webhook: "mine", owner: ADA, body: "{}", at, state };
    // The first one keeps its event from being sent again.
    const delivery = Delivery.parse(at === 1 ? { ...about, keep_until: Date.now() + 3_600_000 } : about);
    return deliveries.keep({ collection: deliveriesOf(ADA), key: `mine ${at}` }, delivery, 60_000);
  };
  await keep(0, "pending");
  for (let at = 1; at < MOST; at++) await keep(at, "delivered");
  expect(await stores.documents.list(deliveriesOf(ADA))).toHaveLength(MOST);
  await keep(MOST, "delivered");
  const kept = await stores.documents.list(deliveriesOf(ADA));
  const times = kept.map(({ body }) => Delivery.parse(JSON.parse(body)).at).sort((a, b) => a - b);
  expect(times).toEqual([0, 1, ...Array.from({ length: MOST - MOST / 10 - 1 }, (_, i) => i + MOST / 10 + 2)]);
});
