// With what a run was started besides its messages: a model, and settings for it. They lie in the thread's state while
// the run waits, so that whoever goes on with it goes on alike.

import type { StreamEvent } from "../core/event.ts";
import { type RunRecord, RunRequest } from "../core/records.ts";
import { given } from "../lib/given.ts";

/** The slot of the thread's state. */
const SLOT = "run_options";

const RunOptions = RunRequest.pick({ model: true, settings: true });
export type RunOptions = Pick<RunRequest, "model" | "settings">;
type State = ReadonlyMap<string, unknown>;

/** Those of the request, and of one that goes on with another run that one's, unless `isOffered` denies its model. */
export function optionsOf(
  { resumes }: RunRecord,
  { model, settings }: RunRequest,
  { state, isOffered }: { readonly state: State; readonly isOffered: (model: string) => boolean },
): RunOptions {
  const kept = resumes === undefined ? undefined : RunOptions.safeParse(state.get(SLOT)).data;
  const before = kept?.model !== undefined && isOffered(kept.model) ? kept.model : undefined;
  return { ...given({ model: model ?? before }), settings: { ...kept?.settings, ...settings } };
}

/** What is to be written with the end of a run that waits. */
export function keptOptions({ model, settings }: RunOptions, state: State): StreamEvent[] {
  const isUsual = model === undefined && Object.keys(settings).length === 0;
  if (isUsual && !state.has(SLOT)) return [];
  return [{ event: "on_state", data: { key: SLOT, value: { settings, ...given({ model }) } } }];
}
