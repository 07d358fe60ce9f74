// The commands of a noun of a running server: they connect to it, do one thing and print the result.

import { type Command, command, type Options, type OptionValues } from "../command.ts";
import type { KeyLine } from "../keys.ts";
import type { Texts } from "../texts/en.ts";
import { SERVER, serverOf, show } from "./options.ts";

type Server = ReturnType<typeof serverOf>;
/** The key of the text about the command. */
type About = keyof Texts["commands"];
type CommandOutput = Promise<string | KeyLine>;

interface Noun<Module> {
  /** A command about all things, such as `webhooks list`. `does` returns the function of the module for it. */
  all<const O extends Options>(
    name: string,
    key: About,
    options: O,
    does: (module: Module) => (server: Server, values: OptionValues<O>) => CommandOutput,
  ): Command;
  /** A command about the thing with the id in its argument, such as `webhooks delete`. */
  one<const O extends Options>(
    name: string,
    key: About,
    options: O,
    does: (module: Module) => (server: Server, id: string, values: OptionValues<O>) => CommandOutput,
  ): Command;
}

/** `load` imports the noun's module once one of its commands runs. */
export function commandsOf<Module>(noun: string, load: () => Promise<Module>): Noun<Module> {
  return {
    all: (name, key, options, does) =>
      command({
        ...{ name: `${noun} ${name}`, about: about(key), options: { ...options, ...SERVER } },
        async run({ url, ...values }: OptionValues<typeof SERVER>) {
          return print(await does(await load())(serverOf(url), values as OptionValues<typeof options>));
        },
      }),
    one: (name, key, options, does) =>
      command({
        ...{ name: `${noun} ${name}`, argument: "ID", about: about(key), options: { ...options, ...SERVER } },
        async run({ url, ...values }: OptionValues<typeof SERVER>, id = "") {
          return print(await does(await load())(serverOf(url), id, values as OptionValues<typeof options>));
        },
      }),
  };
}

const about = (key: About) => (texts: Texts) => texts.commands[key];

const print = (printed: string | KeyLine) =>
  show(typeof printed === "string" ? { output: printed } : printed);
