// The files that the agent changed in this thread, one per line. Each diff opens in a dialog.

import { useState } from "preact/hooks";
import { ProblemError } from "../../client/client.ts";
import { Dialog, Empty, Plain, Problem, useRead, visible } from "../components.tsx";
import { countsOf, diffLines } from "../diff.ts";
import { changedFiles, differencesOf, type FileChange } from "../file-changes.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { DiffView } from "./diff-view.tsx";

/** `version` increases when the agent may have changed more files. */
export function ChangedFiles(props: { thread: string; workdir: string; version: number }) {
  const { thread, workdir, version } = props;
  const { value, problem } = useRead(
    (signal) => changesOf(thread, workdir, signal),
    [thread, workdir, version],
  );
  const [shown, setShown] = useState<FileChange>();
  const words = t().changed;
  return (
    <section aria-label={words.title}>
      <h2>{words.title}</h2>
      <Problem>{problem}</Problem>
      {value?.length === 0 && <Empty>{words.none}</Empty>}
      <ul class="changed">
        {value?.map((change) => (
          <li key={change.path} class="entry">
            <button type="button" class="name" onClick={() => setShown(change)}>
              <Plain>{change.path}</Plain>
            </button>
            <Counts change={change} />
          </li>
        ))}
      </ul>
      {shown && (
        <Dialog title={visible(shown.path)} class="file" onClose={() => setShown(undefined)}>
          <Differences change={shown} />
        </Dialog>
      )}
    </section>
  );
}

async function changesOf(thread: string, workdir: string, signal: AbortSignal): Promise<FileChange[]> {
  try {
    return changedFiles(await client.threads.state(thread, signal), workdir);
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return [];
    throw error;
  }
}

function Counts({ change }: { change: FileChange }) {
  const counts = differencesOf(change).map(({ before, after }) => countsOf(diffLines(before, after)));
  const { edited, written } = t().changed;
  if (counts.length === 0) return <span class="size">{change.op === "edit" ? edited : written}</span>;
  const sum = (key: "added" | "removed") => counts.reduce((total, each) => total + each[key], 0);
  return (
    <span class="size">
      <span class="added">+{sum("added")}</span> <span class="removed">−{sum("removed")}</span>
    </span>
  );
}

function Differences({ change }: { change: FileChange }) {
  const differences = differencesOf(change);
  const words = t().changed;
  if (differences.length === 0) return <Empty>{words.notKept}</Empty>;
  const isUnknown = change.op === "write" && change.before === undefined;
  return (
    <>
      {differences.length > 1 && <p class="note">{words.each}</p>}
      {isUnknown && <p class="note">{words.beforeNotKept}</p>}
      {differences.map(({ before, after, isWhole }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: changes have no key other than their position.
        <DiffView key={index} before={before} after={after} numbers={isWhole} />
      ))}
    </>
  );
}
