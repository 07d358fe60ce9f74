// The variables with which commands are started where rules deny commands or ask about them. Programs that such rules let run,
// git, less and editors, then run nothing that a file or the keyboard says: what a rule misreads has less to work with.

/** Each `false` and `/dev/null` switches off what runs by itself. */
const GIT_SETTINGS = {
  // A folder that looks like a repository is none, unless it is called `.git`.
  "safe.bareRepository": "explicit",
  "core.fsmonitor": "false",
  "core.hooksPath": "/dev/null",
  "core.pager": "cat",
  "protocol.ext.allow": "never",
} as const;

const gitSettings = Object.entries(GIT_SETTINGS).flatMap(([key, value], at) => [
  [`GIT_CONFIG_KEY_${at}`, key],
  [`GIT_CONFIG_VALUE_${at}`, value],
]);

export const GUARDED_ENVIRONMENT: Readonly<Record<string, string>> = {
  ...Object.fromEntries(gitSettings),
  GIT_CONFIG_COUNT: `${Object.keys(GIT_SETTINGS).length}`,
  GIT_TERMINAL_PROMPT: "0",
  // An editor that fails ends what wanted one.
  ...{ GIT_EDITOR: "false", GIT_SEQUENCE_EDITOR: "false", EDITOR: "false", VISUAL: "false" },
  ...{ GIT_PAGER: "cat", PAGER: "cat", MANPAGER: "cat", SYSTEMD_PAGER: "cat" },
  // A file of keys could undo the switch.
  ...{ LESSSECURE: "1", LESSKEY: "/dev/null", LESSKEYIN: "/dev/null" },
};
