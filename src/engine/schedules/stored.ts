// Defines the collection that stores a user's schedules, and builds the write of one schedule.

import type { Document, DocumentWrite, ListedCollection } from "../../agent/core/documents.ts";
import type { Owner } from "../../protocol/ids.ts";
import type { ScheduleRecord } from "./schedule.ts";

export const KIND = "schedules";

export const schedulesOf = ({ tenant, user }: Owner): ListedCollection => ({ kind: KIND, tenant, user });

export const writeOf = (
  key: string,
  before: Document | undefined,
  record: ScheduleRecord,
): DocumentWrite => ({
  ...{ key, seen: before?.version, body: JSON.stringify(record), due: record.next ?? null },
});
