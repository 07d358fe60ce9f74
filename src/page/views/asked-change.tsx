// A file change that waits for approval, as a diff against the current file. Shows every changed line in full.

import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { ProblemError } from "../../client/client.ts";
import { Empty, useRead } from "../components.tsx";
import { contentOf, SHOWN_BYTES } from "../content.ts";
import { type CurrentContent, differenceOf, type FileCall, isReadable } from "../file-calls.ts";
import { client } from "../session.ts";
import { t } from "../texts.ts";
import { DiffView } from "./diff-view.tsx";
import { Exact } from "./exact-text.tsx";

interface AskedChangeProps {
  readonly call: FileCall;
  /** If undefined, the file is not read, because it may be in another workspace. */
  readonly thread: string | undefined;
  /** Called when no diff can be shown. */
  readonly onNone: () => void;
  /** Drawn below the diff. */
  readonly children: ComponentChildren;
}

export function AskedChange({ call, thread, onNone, children }: AskedChangeProps) {
  const { value: current, problem } = useRead(
    (signal) => (thread ? currentOf(call.path, thread, signal) : Promise.resolve<CurrentContent>("unknown")),
    [call.path, thread],
  );
  const known = current ?? (problem === undefined ? undefined : "unknown");
  const difference = known && differenceOf(call, known);
  const isShown = difference !== undefined && isReadable(difference);
  useEffect(() => {
    if (known && !isShown) onNone();
  }, [known, isShown, onNone]);
  if (!known || !isShown) return <Empty>{t().asked.reading}</Empty>;
  return (
    <>
      <p class="path">
        <Exact text={call.path} /> <span class="quiet">· {t().asked[kindOf(difference, known)]}</span>
      </p>
      <DiffView before={difference.before} after={difference.after} numbers={difference.isWhole} isExact />
      {children}
    </>
  );
}

function kindOf({ isWhole, isFound }: { isWhole: boolean; isFound: boolean }, current: CurrentContent) {
  if (!isFound) return "notFound";
  if (!isWhole) return "replaced";
  return current === "missing" ? "newFile" : "compared";
}

/** Does not start a stopped sandbox for the diff. */
async function currentOf(path: string, thread: string, signal: AbortSignal): Promise<CurrentContent> {
  const { agent } = await client.threads.get(thread, signal);
  const { status, workdir } = await client.backend.status(agent, signal);
  if (status !== "running" || (path.startsWith("/") && !path.startsWith(`${workdir}/`))) return "unknown";
  const within = path.startsWith("/") ? path.slice(workdir.length + 1) : path;
  try {
    const range = { first: 0, last: SHOWN_BYTES };
    const start = await client.files.read(within, { agent, range }, signal);
    if (start.size > SHOWN_BYTES) return "unknown";
    const content = contentOf(new Uint8Array(await start.arrayBuffer()), true);
    return content.kind === "text" ? { text: content.text } : "unknown";
  } catch (error) {
    const code = error instanceof ProblemError ? error.code : "";
    if (code === "not_found") return "missing";
    // The server responds this way because an empty file has no first byte.
    if (code === "range_not_satisfiable") return { text: "" };
    throw error;
  }
}
