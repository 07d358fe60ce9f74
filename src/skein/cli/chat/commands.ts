// The commands in a chat, such as `/help`.

import { newThreadId } from "../../../agent/core/new-ids.ts";
import { didYouMean } from "../../../lib/did-you-mean.ts";
import { t } from "../texts.ts";
import { chooseAgent, chooseModel } from "./agents.ts";
import type { ChatChange, ChatCommand, ChatCommandContext } from "./command.ts";
import { chooseThread } from "./threads.ts";

const COMMANDS = {
  help: { takes: "", run: showHelp },
  new: { takes: "", run: () => ({ thread: newThreadId() }) },
  threads: { takes: "[NUMBER]", run: chooseThread },
  agent: { takes: "[NAME]", run: chooseAgent },
  model: { takes: "[NAME]", run: chooseModel },
  quit: { takes: "", run: () => ({ leave: true }) },
} satisfies Readonly<Record<string, ChatCommand>>;
type Name = keyof typeof COMMANDS;
const NAMES = Object.keys(COMMANDS) as readonly Name[];

/** Returns the command in a line, or `undefined` for a message. A path such as `/etc/hosts` is not a command. */
export function commandIn(line: string): { name: string; argument: string } | undefined {
  const [, name, argument = ""] = /^\/([a-z]+)(?:\s+(.*?))?\s*$/su.exec(line) ?? [];
  return name === undefined ? undefined : { name, argument };
}

/** Runs a command of the chat. Throws the server's error. */
export async function runCommand(
  { name, argument }: { readonly name: string; readonly argument: string },
  context: ChatCommandContext,
): Promise<ChatChange> {
  const known = NAMES.find((each) => each === name);
  if (known) return (COMMANDS[known] satisfies ChatCommand as ChatCommand).run(argument, context);
  context.write(`${t().chat.noCommand(`/${name}${didYouMean(name, NAMES)}`)}\n`);
  return {};
}

function showHelp(_: string, { write, paint }: ChatCommandContext): ChatChange {
  const { help } = t().chat;
  for (const name of NAMES)
    write(`  ${paint("cyan", `/${name} ${COMMANDS[name].takes}`.padEnd(18))}${help[name]}\n`);
  write(`  ${help.rest}\n`);
  return {};
}
