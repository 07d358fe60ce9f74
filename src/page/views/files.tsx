// The files that the agent and the user share: the tree, the agent's changes, and the sandbox that contains them.

import { useEffect, useState } from "preact/hooks";
import { type BackendStatus, ProblemError } from "../../client/client.ts";
import { onChange } from "../changes.ts";
import { Empty, Problem, useRead } from "../components.tsx";
import { watch } from "../frame.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import { throttled } from "../throttled.ts";
import { tidied } from "../tree.ts";
import { ChangedFiles } from "./changed-files.tsx";
import { FileDialog } from "./file.tsx";
import { Folder, useFolders } from "./folder.tsx";
import { Sandbox } from "./sandbox.tsx";
import { Upload, UploadButton, useUpload } from "./upload.tsx";

interface FilesProps {
  readonly thread: string;
  /** Touched while a run of the thread is in progress. */
  readonly live: object;
}

/** The shortest time between two reads while a run is in progress. */
const LEAST_MS = 2_000;

export function Files({ thread, live }: FilesProps) {
  const { value: found, problem } = useRead(
    async (signal) => ({ agent: await agentOf(thread, signal) }),
    [thread],
  );
  if (!found) return <Problem>{problem}</Problem>;
  return <Workspace key={found.agent} agent={found.agent} thread={thread} live={live} />;
}

/** A file in the workspace of the thread's agent, in a dialog. */
export function ThreadFile({ thread, path, onClose }: { thread: string; path: string; onClose: () => void }) {
  const { value: found, problem } = useRead(
    async (signal) => ({ agent: await agentOf(thread, signal) }),
    [thread],
  );
  if (!found) return <Problem>{problem}</Problem>;
  return <FileDialog agent={found.agent} path={path} onClose={onClose} onChanged={() => {}} />;
}

/** Returns undefined for the default agent, which every thread without a run has. */
async function agentOf(thread: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    return (await client.threads.get(thread, signal)).agent;
  } catch (error) {
    if (error instanceof ProblemError && error.status === 404) return undefined;
    throw error;
  }
}

function Workspace({ agent, thread, live }: FilesProps & { agent: string | undefined }) {
  const { value, problem, reload } = useRead((signal) => client.backend.status(agent, signal), [agent]);
  const [known, setKnown] = useState<BackendStatus>();
  const status = known ?? value;
  const [version, setVersion] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    const again = throttled(async () => setVersion((before) => before + 1), LEAST_MS, ending.signal);
    const end = watch(live, again);
    return () => {
      end();
      ending.abort();
    };
  }, [live]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `reload` is another function at each drawing, and does the same.
  useEffect(
    () =>
      onChange((change) => {
        if (change.event === "backend_status") {
          if (change.data.name === value?.name && change.data.type === value.type) setKnown(change.data);
        } else if (change.event === "read_again") {
          setKnown(undefined);
          reload();
          setVersion((before) => before + 1);
        } else if (change.event === "run_ended" && change.data.thread_id === thread)
          setVersion((before) => before + 1);
      }),
    [thread, value],
  );
  if (!status) return <Empty>{problem ?? t().shared.reading}</Empty>;
  return (
    <div class="files">
      <Sandbox agent={agent} status={status} onStatus={setKnown} />
      {status.status === "running" ? (
        <Tree agent={agent} version={version} />
      ) : (
        <Empty>{t().files.notRunning}</Empty>
      )}
      <ChangedFiles thread={thread} workdir={status.workdir} version={version} />
    </div>
  );
}

/** `version` increases when the files may have changed. */
function Tree({ agent, version }: { agent: string | undefined; version: number }) {
  const folders = useFolders(agent, version);
  const [shown, setShown] = useState<string>();
  const upload = useUpload(agent, folders.refresh);
  const root = folders.open.get("");
  const words = t().files;
  return (
    <section
      class="tree"
      aria-label={words.title}
      onDragOver={(event) => may("run") && event.preventDefault()}
      onDrop={(event) => upload.drop(event, "")}
    >
      <header class="row">
        <h2>{words.title}</h2>
        {may("run") && <NewFile onName={setShown} />}
        {may("run") && <UploadButton into="" upload={upload} />}
        <button type="button" class="quiet" aria-label={words.again} onClick={folders.refresh}>
          ↻
        </button>
      </header>
      <Upload upload={upload} />
      {root?.entries?.length === 0 && <Empty>{may("run") ? words.emptyOrUpload : words.empty}</Empty>}
      <Folder path="" folders={folders} upload={upload} onFile={setShown} />
      {shown !== undefined && (
        <FileDialog
          key={shown}
          agent={agent}
          path={shown}
          onClose={() => setShown(undefined)}
          onChanged={folders.refresh}
        />
      )}
    </section>
  );
}

/** Missing folders are created with the file. */
function NewFile({ onName }: { onName: (path: string) => void }) {
  const [isAsked, setAsked] = useState(false);
  const [name, setName] = useState("");
  const words = t().files;
  if (!isAsked)
    return (
      <button type="button" class="quiet" onClick={() => setAsked(true)}>
        + {words.new}
      </button>
    );
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        setAsked(false);
        setName("");
        if (tidied(name) !== "") onName(tidied(name));
      }}
    >
      <input
        aria-label={words.pathOfNew}
        placeholder="folder/name.txt"
        value={name}
        autofocus
        onInput={(event) => setName(event.currentTarget.value)}
      />
      <button type="submit">{words.create}</button>
      <button type="button" class="quiet" aria-label={words.cancelNew} onClick={() => setAsked(false)}>
        ✕
      </button>
    </form>
  );
}
