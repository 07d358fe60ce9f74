// The messages that processes send each other through a store. They may come from another version of this program, or
// from another program.

import { z } from "zod";
import type { UserEvent } from "../../../agent/core/bus.ts";
import type { ControlMessage } from "../../../agent/core/stores.ts";

/** Also accepts an event, or a field, of a newer version. Users get it unchanged. */
export const ToldEvent = z.looseObject({
  event: z.string().regex(/^[a-z_]+$/),
  data: z.looseObject({}),
}) as unknown as z.ZodType<UserEvent>;

export const Call: z.ZodType<ControlMessage> = z.discriminatedUnion("call", [
  z.object({ call: z.literal("stop"), run_id: z.string(), mode: z.enum(["cancel", "interrupt"]) }),
  z.object({ call: z.literal("waiting") }),
]);

export const WAITING: ControlMessage = { call: "waiting" };

/** Returns the value, or undefined if the text is not JSON or does not fit the schema. */
export function parsed<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
