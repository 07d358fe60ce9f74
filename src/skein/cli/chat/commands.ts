// The commands of a chat: `/help` and the others.

import { newThreadId } from "../../../agent/core/new-ids.ts";
import { didYouMean } from "../../../lib/did-you-mean.ts";
import { chooseAgent, chooseModel } from "./agents.ts";
import type { Change, Command, Context } from "./command.ts";
import { chooseThread } from "./threads.ts";

const COMMANDS: Readonly<Record<string, Command>> = {
  help: { takes: "", help: "list the commands", run: showHelp },
  new: { takes: "", help: "begin a new thread", run: () => ({ thread: newThreadId() }) },
  threads: {
    takes: "[NUMBER]",
    help: "list the newest threads, or open one by its number or id",
    run: chooseThread,
  },
  agent: { takes: "[NAME]", help: "list the agents, or change the agent", run: chooseAgent },
  model: {
    takes: "[NAME]",
    help: "list the models, or change the model; /model default: the agent's own",
    run: chooseModel,
  },
  quit: {
    takes: "",
    help: "leave; so do Ctrl-D, and Ctrl-C at an empty line",
    run: () => ({ leave: true }),
  },
};

/** The command in a line; `undefined` for a message. A path such as `/etc/hosts` is no command. */
export function commandIn(line: string): { name: string; argument: string } | undefined {
  const [, name, argument = ""] = /^\/([a-z]+)(?:\s+(.*?))?\s*$/su.exec(line) ?? [];
  return name === undefined ? undefined : { name, argument };
}

/** Throws what the server refuses. */
export async function runCommand(
  { name, argument }: { readonly name: string; readonly argument: string },
  context: Context,
): Promise<Change> {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (command) return command.run(argument, context);
  context.write(`There is no command /${name}${didYouMean(name, Object.keys(COMMANDS))}\n`);
  return {};
}

function showHelp(_: string, { write, paint }: Context): Change {
  for (const [name, { takes, help }] of Object.entries(COMMANDS))
    write(`  ${paint("cyan", `/${name} ${takes}`.padEnd(18))}${help}\n`);
  write("  Everything else is a message; a space before it makes a message of a command.\n");
  return {};
}
