// Which user of Skein a person in Slack is, and which thread of theirs a thread in Slack is. Replace `ownerOf` to use your own
// directory.

import type { Said } from "./payloads.ts";

/** Each person has threads, quotas and permissions of their own. */
export const ownerOf = (tenant: string, { team, user }: Pick<Said, "team" | "user">) => ({
  tenant,
  user: `slack:${team}:${user}`,
});

export const threadOf = ({ team, channel, thread_ts }: Pick<Said, "team" | "channel" | "thread_ts">) =>
  `slack_${team}_${channel}_${thread_ts.replace(".", "_")}`;
