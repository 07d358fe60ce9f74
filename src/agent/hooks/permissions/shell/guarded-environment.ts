// Variables for commands of agents with rules about commands. They restrict programs that such rules may allow (git, less
// and editors), so files and typed input can make these programs run fewer other programs. A mistake in a rule then does
// less harm.

/** Git accepts a folder as a repository only if its name is `.git`. */
const FOR_ALL = { "safe.bareRepository": "explicit", "protocol.ext.allow": "never" } as const;

/** Also disables everything that a repository can execute by itself. */
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

/** The key files are disabled because a key file could undo `LESSSECURE`. */
const LESS: Variables = { LESSSECURE: "1", LESSKEY: "/dev/null", LESSKEYIN: "/dev/null" };

const ALLOWING: Variables = { ...gitSettings(FOR_ALL), ...LESS };

const DENYING: Variables = {
  ...gitSettings(FOR_DENYING),
  ...LESS,
  GIT_TERMINAL_PROMPT: "0",
  // If a command needs an editor, the failing editor ends it.
  ...{ GIT_EDITOR: "false", GIT_SEQUENCE_EDITOR: "false", EDITOR: "false", VISUAL: "false" },
  ...{ GIT_PAGER: "cat", PAGER: "cat", MANPAGER: "cat", SYSTEMD_PAGER: "cat" },
};

/**
 * Returns the variables. If no rule denies or asks, returns fewer variables, because an allowed program may
 * need its features, such as a repository's hooks.
 */
export function guardedEnvironment(rules: {
  readonly speaksOfCommands: boolean;
  /** The rules that deny or ask. Undefined if none exist. */
  readonly guard: unknown;
}): Variables {
  if (rules.guard !== undefined) return DENYING;
  return rules.speaksOfCommands ? ALLOWING : {};
}
