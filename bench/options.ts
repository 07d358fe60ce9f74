// The command line of the benchmark.

import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { PROVIDERS, type Provider, STORES, type Store } from "./targets.ts";

const USAGE = `npm run bench -- [options]

  --scenario <name>      only this one; may be given several times
  --rounds <n>           pairs per figure (default 5)
  --store <kind>         ${STORES.join(" or ")} (default memory)
  --provider <kind>      the wire between Skein and the fake provider: ${PROVIDERS.join(" or ")} (default openai)
  --beside <kind>        instead of the bare relay, this server on another store: ${STORES.join(" or ")};
                         or the server of another checkout on the same store: the path of its folder
  --target bare          the relay against itself: what noise alone does to the ratios
  --target ai-sdk        the AI SDK in a plain server
  --profile <folder>     tell where both servers' CPU time went, and leave the profiles there (for DevTools)

Scenarios: `;

/** Another checkout of this project, with its packages installed. */
export interface Checkout {
  readonly folder: string;
}

export interface Options {
  readonly scenarios: readonly string[] | undefined;
  readonly rounds: number;
  readonly store: Store;
  readonly provider: Provider;
  readonly target: "skein" | "bare" | "ai-sdk";
  readonly beside: "bare" | Store | Checkout;
  readonly profile: string | undefined;
}

/** Throws an error with the usage if the command line is invalid. */
export function readOptions(args: readonly string[], scenarios: readonly string[]): Options {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        scenario: { type: "string", multiple: true },
        rounds: { type: "string", default: "5" },
        store: { type: "string", default: "memory" },
        provider: { type: "string", default: "openai" },
        target: { type: "string", default: "skein" },
        beside: { type: "string", default: "bare" },
        profile: { type: "string" },
      },
    });
    return {
      scenarios: values.scenario?.map((name) => oneOf("--scenario", name, scenarios)),
      rounds: atLeastOne(values.rounds),
      store: oneOf("--store", values.store, STORES),
      provider: oneOf("--provider", values.provider, PROVIDERS),
      target: oneOf("--target", values.target, ["skein", "bare", "ai-sdk"] as const),
      beside: values.beside.includes("/")
        ? { folder: resolve(values.beside) }
        : oneOf("--beside", values.beside, ["bare", ...STORES] as const),
      profile: values.profile,
    };
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n\n${USAGE}${scenarios.join(", ")}`);
  }
}

function oneOf<T extends string>(option: string, given: string, values: readonly T[]): T {
  const value = values.find((each) => each === given);
  if (value === undefined) throw new Error(`${option} must be ${values.join(", ")}; it is \`${given}\`.`);
  return value;
}

function atLeastOne(given: string): number {
  const value = Number(given);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--rounds must be 1 or more; it is \`${given}\`.`);
  return value;
}
