// `skein store check`: reads the configured store and prints its contradictions.

import { messageOf } from "../../agent/core/errors.ts";
import { type CheckCounts, checkStore } from "../../engine/stores/check/check.ts";
import type { Finding } from "../../engine/stores/check/rules.ts";
import { loadServerConfig } from "../../server/config/load.ts";
import { openInspection } from "../app/stores.ts";
import { visible } from "./paint.ts";
import { onSignals, STOPS } from "./signals.ts";
import { t } from "./texts.ts";

/** Returns the exit code. 0: no contradictions. 1: at least one. 2: the store could not be read completely. */
export async function storeCheck(
  env: NodeJS.ProcessEnv,
  { json }: { readonly json: boolean },
): Promise<number> {
  const print = (line: string) => void process.stdout.write(`${line}\n`);
  try {
    const store = await openInspection(await loadServerConfig(env));
    const stopping = new AbortController();
    const stopListening = onSignals(STOPS, () => stopping.abort());
    try {
      const all = checkStore(store, { signal: stopping.signal });
      let findings = 0;
      for (;;) {
        const { value, done } = await all.next();
        if (done) {
          print(json ? JSON.stringify({ findings, ...value }) : summaryOf(findings, value));
          return findings > 0 ? 1 : 0;
        }
        findings++;
        print(json ? JSON.stringify(value) : visible(lineOf(value)));
      }
    } finally {
      stopListening();
      await store.close();
    }
  } catch (error) {
    process.stderr.write(`skein: ${visible(messageOf(error))}\n`);
    return 2;
  }
}

function lineOf({ rule, text, owner, thread, run }: Finding): string {
  const place = [
    ...(thread === undefined ? [] : [t().store.threadOf(thread, `${owner?.tenant}/${owner?.user}`)]),
    ...(run === undefined ? [] : [t().store.run(run)]),
  ];
  return `${place.length > 0 ? `${place.join(", ")}: ` : ""}${text} [${rule}]`;
}

const summaryOf = (findings: number, read: CheckCounts) =>
  `${t().store.found(findings)}: ${t().store.read(read)}.`;
