// English. A sentence with values in it is a function.

import { amount, number } from "../locale.ts";

/** The texts that each language provides. */
export type Texts = typeof en;

const threads = (count: number) => amount(count, "thread", "threads");
const messages = (count: number) => amount(count, "message", "messages");
const files = (count: number, bytes: number) =>
  `${amount(count, "file", "files")} (${amount(bytes, "byte", "bytes")})`;

export const en = {
  help: {
    head: (version: string, docs: string) => `skein ${version}: an agent server

Settings come from config/server.yaml, the environment and a file .env.
Documentation: ${docs}`,
    ofOne: "`skein COMMAND --help` shows the options of a command.",
    needsOne: (group: string) => `\`skein ${group}\` needs one of these commands.`,
    unknownCommand: (name: string) => `unknown command \`${name}\``,
    unexpected: (argument: string) => `unexpected argument \`${argument}\``,
    quoteMessage: ": put the message in quotes",
    missingArgument: (name: string) => `missing argument ${name}`,
    missingOption: (name: string) => `missing required option --${name}`,
    /** The first sentence of Node's message about an option. */
    option: (fault: string) => fault,
  },
  envUnreadable: (file: string, why: string) => `\`${file}\` cannot be read: ${why}`,
  commands: {
    init: "write a project with an agent, a tool and a hook",
    serve: "serve the agents of agents.yaml",
    chat: "talk to a running server, or send one message",
    acp: "connect an editor to an agent of a running server, over stdio",
    configCheck: "validate the configuration and list every problem",
    configDiff: "show the changes that another agents file would make",
    keysCreate: "create an API key",
    keysGenerate: "print a key for BOOTSTRAP_API_KEY, without storing it",
    keysList: "list keys; secrets are never shown",
    keysRevoke: "revoke a key",
    backup: "back up the data of a running server",
    storeCheck: "check the store for contradictions, also while a server uses it",
    restore: "replace the data by a backup; the server must not run",
    threadsExport: "write a user's threads to a folder",
    threadsImport: "create threads from an exported folder",
    webhooksList: "list your webhooks",
    webhooksPut: "create or replace a webhook and print its new secret",
    webhooksRotate: "give a webhook a new secret and print it",
    webhooksTest: "send a sample to a webhook",
    webhooksDeliveries: "list the most recent deliveries of a webhook",
    webhooksSend: "send a delivery of a webhook again",
    webhooksDelete: "delete a webhook and its deliveries",
  },
  /** Names of variables and defaults are in brackets at the end. */
  options: {
    config: "file with the settings of the server [CONFIG_FILE, config/server.yaml]",
    agents: "file with the agents [AGENTS_FILE, ./agents.yaml]",
    data: "folder of the database and the workspaces [DATA_DIR, ./data]",
    port: "port to listen on; 0 takes any free port [PORT, 8000]",
    host: "address to listen on [HOST, 127.0.0.1]",
    workers: "processes that share the port, with redis or postgres [WORKERS, 1]",
    url: "address of the running server; SKEIN_API_KEY is its key or token [http://127.0.0.1:8000]",
    agent: "agent to use; the default is the thread's agent or the first one",
    user: "user; not needed with AUTH=none",
    tenant: "tenant of the user [default]",
    model: "model to use, such as anthropic:claude-sonnet-5",
    thread: "thread to continue; the default is a new thread",
    eventsAsJson: "print the events of the run as JSON, one per line",
    temporary: "send the message on a new thread, which the server deletes after the run",
    keyUser: "owner of the key; required",
    scopes: "scopes, separated by commas: read, run, tools, admin, operator [read,run]",
    keyName: "purpose of the key",
    expires: "expiry, such as 90d, 12h or 2031-01-31; the default is never",
    keysOfTenant: "list only the keys of this tenant",
    findingsAsJson: "print findings as JSON, one per line",
    resume: "continue an interrupted import; skip threads that exist",
    webhookAddress: "address that receives the events; required",
    webhookOn: "events, separated by commas [run.ended,run.failed]",
    webhookOnly: "agents whose events to send, separated by commas; the default is all",
    webhookOrdered: "send the events of a thread in order",
    webhookPaused: "send nothing until the next put",
    webhookStatus: "list only deliveries with this status: pending, delivered, failed",
    webhookDelivery: "id of the delivery; required",
  },
  init: {
    exists: (dir: string, files: string) =>
      `${dir} already contains ${files}; nothing was written. Name a new folder: skein init my-agents`,
    wrote: (files: string, dir: string) => `Wrote ${files} to ${dir}. Next:`,
    otherTerminal: "in another terminal",
    example: "Roll two dice.",
    script: "Without a key a script plays the model; .env.example shows how to set a real one.",
    fromCopy: (path: string) =>
      `package.json takes skein from ${path}, because this copy does not come from a registry.`,
  },
  keys: {
    expiryInPast: "must be in the future, such as 90d, 12h, 2031-01-31 or 2031-01-31T10:00:00Z",
    created: (key: { id: string; user: string; tenant: string; scopes: string }, end: string) =>
      `Key ${key.id}: user ${key.user} of tenant ${key.tenant} may ${key.scopes}, ${end}.\nThe key is shown only once. Revoke it with \`skein keys revoke ${key.id}\`.`,
    until: (time: string) => `until ${time}`,
    untilRevoked: "until it is revoked",
    generated:
      "The key is not stored. Start a server with it as BOOTSTRAP_API_KEY: it then has all scopes, as the user `admin`.",
    head: ["ID", "TENANT", "USER", "SCOPES", "CREATED", "STATE", "NAME"],
    states: { revoked: "revoked", valid: "valid", until: "until", expired: "expired" },
    unknown: "There is no key with this id. `skein keys list` shows all keys.",
    revoked: (id: string) => `Revoked ${id}. Servers may accept it for a few more seconds.`,
  },
  webhooks: {
    head: ["ID", "EVENTS", "STATE", "ADDRESS"],
    deliveryHead: ["ID", "EVENT", "STATUS", "ATTEMPTS", "CREATED", "RUN", "ERROR"],
    states: { on: "on", paused: "paused", disabled: "disabled", failing: "failing since" },
    created: (id: string) => `Webhook ${id} signs its deliveries with this secret. It is shown only once.`,
    replaced: (id: string) => `Replaced ${id}. It keeps its secret.`,
    rotated: "The secret is shown only once. The previous one signs too for 24 hours.",
    delivered: "The receiver took the sample.",
    notDelivered: (why: string) => `The receiver did not take the sample: ${why}.`,
    sent: (id: string) => `Sending ${id} again.`,
    deleted: (id: string) => `Deleted ${id}.`,
  },
  backup: {
    exists: (dir: string) => `${dir} already exists. Name a new folder.`,
    inProgress: (part: string, dir: string) =>
      `${part} exists: another backup to ${dir} is in progress, or was killed. Wait for it, or delete ${part}.`,
    onServer: (path: string, count: number, bytes: number) =>
      `The backup is on the server's machine: ${path}, with ${files(count, bytes)}.`,
    done: (count: number, bytes: number, dir: string) => `Backed up ${files(count, bytes)} to ${dir}.`,
    withoutSandboxes: (count: number) =>
      `The backup does not contain the files of ${amount(count, "sandbox", "sandboxes")}, which are in volumes of Docker engines. Back them up on the engines' machines.`,
    restored: (count: number, dir: string, before: string) =>
      `Restored ${amount(count, "file", "files")} to ${dir}. The previous data are in ${before}; delete them when you no longer need them.`,
  },
  config: { warning: (text: string) => `warning: ${text}`, noChanges: "no changes" },
  store: {
    threadOf: (thread: string, owner: string) => `thread ${thread} of ${owner}`,
    run: (run: string) => `run ${run}`,
    found: (count: number) =>
      count === 0 ? "No contradictions found" : amount(count, "contradiction", "contradictions"),
    read: (read: { threads: number; runs: number; messages: number; events: number }) =>
      [
        threads(read.threads),
        amount(read.runs, "run", "runs"),
        messages(read.messages),
        amount(read.events, "event", "events"),
      ].join(", "),
  },
  threads: {
    ownerFromKey: "With --url the owner comes from SKEIN_API_KEY; omit --user and --tenant.",
    ownerMissing: "Specify the owner with --user and --tenant.",
    notDurable: "STORE=memory does not persist threads. Use STORE=sqlite, redis or postgres.",
    exported: (count: number, written: number, dir: string) =>
      `Exported ${threads(count)} with ${messages(written)} to ${dir}.`,
    folderExists: (path: string) => `${path} already exists. Export into an empty folder.`,
    imported: (count: number, read: number, dir: string) =>
      `Imported ${threads(count)} with ${messages(read)} from ${dir}.`,
    skipped: (count: number) => `Skipped ${threads(count)} that already existed.`,
    exists: (id: string) =>
      `Thread \`${id}\` already exists. Import never overwrites a thread; --resume skips it.`,
    noFolder: (dir: string) => `${dir} is not a readable folder.`,
    incomplete: (file: string, fault: string) => `${file} ${fault}: the export of this thread is incomplete.`,
    missing: "does not exist",
    wrongId: (file: string, id: string) => `${file}: session_id must be the name of the folder, \`${id}\`.`,
    tooLarge: (file: string, mib: number) => `${file} is larger than ${number(mib)} MiB.`,
    duplicate: (place: string, id: string) => `${place}: duplicate message \`${id}\`.`,
    longLine: (place: string, mib: number) => `${place}: is longer than ${number(mib)} MiB.`,
    tooDeep: (place: string, most: number, depth: number) =>
      `${place}: must not be nested more than ${number(most)} levels deep; it has ${number(depth)} levels.`,
    noJson: (place: string) => `${place}: must be JSON`,
    refused: "refused",
  },
  serve: {
    serves: (version: string, address: string, facts: string) =>
      `Skein ${version} serves on ${address} (${facts}).`,
    workers: (count: number) => amount(count, "worker", "workers"),
    openOrTry: "Open it in a browser, or try:",
    try: "Try it:",
    /** `reason` is a clause of the server, in English. */
    asks: (model: string, reason: string) => `The default agent uses ${model}, ${reason}.`,
    isScript:
      "This model is a script: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or name a model in agents.yaml.",
    example: "Hello, what can you do?",
    closing: "Shutting down: runs in progress may end first. Press Ctrl-C again to quit at once.",
  },
  chat: {
    noServer: (url: string) => `No Skein server responds at ${url}. Start one with \`npm start\`.`,
    jsonNeedsMessage: "--json needs a message.",
    temporaryNeedsMessage: "--temporary needs a message, and no --thread.",
    emptyMessage: "The message is empty.",
    longInput: (bytes: number) => `The input is longer than ${number(bytes)} bytes.`,
    noText: "The input is not UTF-8 text.",
    waits: (thread: string) => `(It waits for an answer: \`skein chat --thread ${thread}\`.)`,
    stopping: "stopping; Ctrl-C again to stop following",
    stoppingAfterStep: "stopping after this step; Ctrl-C again to stop now",
    left: "no longer following; the run may continue",
    retrying: (reason: string) => `(${reason} Retrying; press Ctrl-C to stop.)`,
    connectionFailed: (reason: string) => `The connection failed: ${reason}`,
    thread: (id: string, url: string) => `Thread ${id} on ${url}. /help lists the commands.`,
    toContinue: (thread: string) => `To continue: skein chat --thread ${thread}`,
    earlier: (count: number) => `(${amount(count, "earlier message", "earlier messages")})`,
    answers: (agent: string, model: string) => `${agent} answers, with ${model}.`,
    noAgents: "There is no agent.",
    noAgent: (name: string) => `There is no agent ${name}`,
    noModel: (name: string) => `There is no model ${name}`,
    noCommand: (name: string) => `There is no command ${name}`,
    defaultModel: "default",
    otherModels: "and others, as provider:model",
    noNumber: (number: string) => `There is no number ${number} in the list.`,
    noThreads: "There are no threads yet.",
    noTitle: "(no title)",
    states: { idle: "", busy: "running", interrupted: "waits for an answer", error: "failed" },
    help: {
      help: "list the commands",
      new: "begin a new thread",
      threads: "list the newest threads, or open one by its number or id",
      agent: "list the agents, or change the agent",
      model: "list the models, or change the model; /model default: the agent's own",
      quit: "leave; so do Ctrl-D, and Ctrl-C at an empty line",
      rest: "Everything else is a message; a space before it makes a message of a command.",
    },
  },
  questions: {
    askedBy: (agent: string, prompt: string) => `${agent} asks: ${prompt}`,
    choices: "[y]es, [a]lways in this thread, [A]lways with this agent, [e]dit, or no, and why",
    widths: (widths: string) => `(always for more: ${widths})`,
    commandWidth: (starts: readonly string[]) => `commands that begin with ${starts.join(" or ")}`,
    toolWidth: (tool: string) => `every call of ${tool}`,
    /** Words besides the English ones, which every terminal accepts. */
    approving: [] as readonly string[],
    /** Begins a refusal; the rest of the line is its reason. */
    denying: /^no?\b[,.:]?\s*/i,
    several: "several with commas: ",
    noOption: "Not one of the options. Try again: ",
    args: "arguments, as JSON: ",
    noObject: "Not a JSON object. Try again: ",
  },
  run: {
    statuses: {} as Readonly<Record<string, string>>,
    waits: undefined as string | undefined,
    /** By the run's stop reason. Without a text here the terminal shows the server's, in English. */
    ends: {} as Readonly<Record<string, string>>,
    ms: (ms: number) => `${number(ms)} ms`,
  },
};
