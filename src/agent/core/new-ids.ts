// Creates random ids with a prefix that names their kind.

import { randomId } from "../../lib/random-id.ts";

export const newThreadId = () => `th_${randomId()}`;
export const newRunId = () => `run_${randomId()}`;
export const newMessageId = () => `msg_${randomId()}`;
export const newCallId = () => `call_${randomId()}`;
