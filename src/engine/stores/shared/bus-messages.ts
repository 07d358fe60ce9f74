// The messages that processes send each other through a store. They may come from another version of this program or
// from a different program.

import { z } from "zod";
import type { UserEvent } from "../../../agent/core/bus.ts";
import type { ControlMessage } from "../../../agent/core/stores.ts";

/** Also accepts events and fields of newer versions. Users get these unchanged. */
export const ToldEvent = z.looseObject({
  event: z.string().regex(/^[a-z_]+$/),
  data: z.looseObject({}),
}) as unknown as z.ZodType<UserEvent>;

export const Call: z.ZodType<ControlMessage> = z.discriminatedUnion("call", [
  z.object({ call: z.literal("stop"), run_id: z.string(), mode: z.enum(["cancel", "interrupt"]) }),
  z.object({ call: z.literal("waiting") }),
]);

export const WAITING: ControlMessage = { call: "waiting" };

/** Returns the value, or undefined if the text is not JSON or does not match the schema. */
export function parsed<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
