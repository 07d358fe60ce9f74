// The variables with which commands are started where rules speak of commands. Programs that such rules let run, git, less and
// editors, then run less of what a file or the keyboard says: what a rule misreads has less to work with.

/** Git takes a folder for a repository only if it is called `.git`. */
const FOR_ALL = { "safe.bareRepository": "explicit", "protocol.ext.allow": "never" } as const;

/** Switches off what a repository runs by itself. */
const FOR_DENYING = {
  ...FOR_ALL,
  "core.fsmonitor": "false",
  "core.hooksPath": "/dev/null",
  "core.pager": "cat",
} as const;

type Variables = Readonly<Record<string, string>>;

const gitSettings = (settings: Variables): Variables => ({
  GIT_CONFIG_COUNT: `${Object.keys(settings).length}`,
  ...Object.fromEntries(
    Object.entries(settings).flatMap(([key, value], at) => [
      [`GIT_CONFIG_KEY_${at}`, key],
      [`GIT_CONFIG_VALUE_${at}`, value],
    ]),
  ),
});

/** A file of keys could undo the switch. */
const LESS: Variables = { LESSSECURE: "1", LESSKEY: "/dev/null", LESSKEYIN: "/dev/null" };

const ALLOWING: Variables = { ...gitSettings(FOR_ALL), ...LESS };

const DENYING: Variables = {
  ...gitSettings(FOR_DENYING),
  ...LESS,
  GIT_TERMINAL_PROMPT: "0",
  // An editor that fails ends what wanted one.
  ...{ GIT_EDITOR: "false", GIT_SEQUENCE_EDITOR: "false", EDITOR: "false", VISUAL: "false" },
  ...{ GIT_PAGER: "cat", PAGER: "cat", MANPAGER: "cat", SYSTEMD_PAGER: "cat" },
};

/** A rule that allows a program leaves it its own use, such as the hooks of a repository. */
export function guardedEnvironment(rules: {
  readonly speaksOfCommands: boolean;
  /** The rules that deny or ask; undefined if there are none. */
  readonly guard: unknown;
}): Variables {
  if (rules.guard !== undefined) return DENYING;
  return rules.speaksOfCommands ? ALLOWING : {};
}
