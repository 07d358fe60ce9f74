// Maps a person in Slack to a user of Skein, and a thread in Slack to one of the user's threads. Replace `ownerOf` to
// use your own directory.

import type { Said } from "./payloads.ts";

/** Each person has their own threads, quotas and permissions. */
export const ownerOf = (tenant: string, { team, user }: Pick<Said, "team" | "user">) => ({
  tenant,
  user: `slack:${team}:${user}`,
});

export const threadOf = ({ team, channel, thread_ts }: Pick<Said, "team" | "channel" | "thread_ts">) =>
  `slack_${team}_${channel}_${thread_ts.replace(".", "_")}`;
