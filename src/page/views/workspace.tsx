// Workspace files in a conversation: links that open them, and pictures.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import type { Lane } from "../../client/cells.ts";
import { ProblemError } from "../../client/client.ts";
import { Plain, useRead, visible } from "../components.tsx";
import { contentOf, IMAGE_BYTES } from "../content.ts";
import { lazy } from "../lazy.tsx";
import { client, messageOf } from "../session.ts";
import { t } from "../texts.ts";
import { nameOf, withinWorkspace } from "../tree.ts";
import { namedFiles, pathOf } from "../workspace-paths.ts";

const FileDialog = lazy(async () => (await import("./file.tsx")).FileDialog);

interface Workspace {
  readonly agent: string | undefined;
  /** Returns true if a tool call has named the path. */
  readonly isNamed: (path: string) => boolean;
  readonly show: (path: string) => void;
}
const WorkspaceOf = createContext<Workspace | undefined>(undefined);

/** Allows the texts inside it to refer to files in the agent's workspace. */
export function InWorkspace(props: { agent: string | undefined; lane: Lane; children: ComponentChildren }) {
  const { agent, lane, children } = props;
  const [shown, show] = useState<string>();
  const of = useMemo(() => ({ agent, isNamed: namedFiles(lane), show }), [agent, lane]);
  return (
    <WorkspaceOf.Provider value={of}>
      {children}
      {shown !== undefined && (
        <FileDialog
          key={shown}
          agent={agent}
          path={shown}
          onClose={() => show(undefined)}
          onChanged={() => {}}
        />
      )}
    </WorkspaceOf.Provider>
  );
}

/** A link that opens the file, or reports that it is missing. Outside a conversation, it is plain text with the path. */
export function FileLink({ path: address, children }: { path: string; children: ComponentChildren }) {
  const workspace = useContext(WorkspaceOf);
  const [problem, setProblem] = useState("");
  const path = pathOf(address);
  if (!workspace)
    return (
      <>
        {children} (<Plain>{path}</Plain>)
      </>
    );
  const open = async () => {
    setProblem("");
    try {
      const found = await fileOf(path, workspace.agent);
      if (found === undefined) setProblem(t().markdown.noFile(visible(path)));
      else workspace.show(found);
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <>
      <button type="button" class="jump" title={visible(path)} onClick={open}>
        {children}
      </button>
      {problem && (
        <small class="host" role="alert">
          {" "}
          {problem}
        </small>
      )}
    </>
  );
}

/** Returns the path in the workspace, or undefined if the file does not exist. */
async function fileOf(path: string, agent: string | undefined): Promise<string | undefined> {
  const within = path.startsWith("/")
    ? withinWorkspace((await client.backend.status(agent)).workdir, path)
    : path;
  try {
    await client.files.read(within, { agent, range: { first: 0, last: 0 } });
  } catch (error) {
    const code = error instanceof ProblemError ? error.code : "";
    if (code === "not_found") return undefined;
    // An empty file has no first byte.
    if (code !== "range_not_satisfiable") throw error;
  }
  return within;
}

/** Inline code, which is a link if it names a file that the agent has used. */
export function InlineCode({ code }: { code: string }) {
  const workspace = useContext(WorkspaceOf);
  const isFile = code.length <= MAX_PATH && workspace?.isNamed(code) === true;
  return <code>{isFile ? <FileLink path={encodeURIComponent(code)}>{code}</FileLink> : code}</code>;
}
const MAX_PATH = 300;

/** Loads only while the workspace is running, because reading an old conversation must not start it. */
export function WorkspacePicture({ path: address, name }: { path: string; name: string }) {
  const workspace = useContext(WorkspaceOf);
  const path = pathOf(address);
  const [picture, setPicture] = useState<string>();
  const { value } = useRead(
    async (signal) => (workspace ? await imageOf(path, workspace.agent, signal) : undefined),
    [path, workspace?.agent],
  );
  useEffect(() => {
    if (!value) return undefined;
    const made = URL.createObjectURL(value);
    setPicture(made);
    return () => {
      URL.revokeObjectURL(made);
      setPicture(undefined);
    };
  }, [value]);
  if (picture) return <img class="drawn" src={picture} alt={name || visible(nameOf(path))} />;
  return <FileLink path={address}>{t().markdown.workspacePicture(name || visible(nameOf(path)))}</FileLink>;
}

async function imageOf(
  path: string,
  agent: string | undefined,
  signal: AbortSignal,
): Promise<Blob | undefined> {
  const { status, workdir } = await client.backend.status(agent, signal);
  if (status !== "running") return undefined;
  const range = { first: 0, last: IMAGE_BYTES };
  const bytes = await client.files.read(withinWorkspace(workdir, path), { agent, range }, signal);
  if (bytes.size > IMAGE_BYTES) return undefined;
  const content = contentOf(new Uint8Array(await bytes.slice(0, 64).arrayBuffer()), false);
  return content.kind === "image" ? new Blob([bytes], { type: content.type }) : undefined;
}
