// Moves between the versions of a message: `‹ 2/3 ›`.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useMemo, useRef } from "preact/hooks";
import { Action, useRead } from "../components.tsx";
import { useTouched } from "../frame.ts";
import type { OpenThread } from "../live.ts";
import { readVersions } from "../read-versions.ts";
import { client, may } from "../session.ts";
import { t } from "../texts.ts";
import type { Version } from "../versions.ts";

interface Versions {
  /** The versions of each message. The key is the id of the first message of the version that is visible. */
  readonly at: ReadonlyMap<string, readonly Version[]>;
  /** The first message of the version that the user chose. Its buttons receive focus. */
  readonly chosen: { current: string | undefined };
  choose(version: Version): Promise<void>;
}

const VersionsOf = createContext<Versions | undefined>(undefined);

/** Provides the versions to the messages inside it. Calls `onLeave` before the thread switches to another version. */
export function WithVersions(props: {
  thread: string;
  open: OpenThread;
  onLeave: () => void;
  children: ComponentChildren;
}) {
  const { thread, open, onLeave, children } = props;
  const { page, state } = useTouched(open.live);
  const { isActive, id: run } = useTouched(page.run);
  const { cells } = useTouched(page.lane);
  const isSettled = state === "ready" && !isActive && cells.length > 0;
  const { value } = useRead(
    async (signal) => (isSettled ? readVersions(thread, signal) : undefined),
    [thread, isSettled, run],
  );
  const chosen = useRef<string>(undefined);
  const shown = cells.length;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `cells` is one array, which grows.
  const versions = useMemo((): Versions => {
    const drawn = new Set(cells.map((cell) => ("id" in cell ? cell.id : undefined)));
    return {
      at: new Map(
        value?.map(({ ids, versions }) => [ids.find((id) => drawn.has(id)) ?? "", versions] as const),
      ),
      chosen,
      async choose({ branch, first }) {
        if (!branch) return;
        onLeave();
        chosen.current = first;
        await open.rewind(() => client.threads.restore(thread, branch));
      },
    };
  }, [value, shown, thread, open, onLeave]);
  return <VersionsOf.Provider value={versions}>{children}</VersionsOf.Provider>;
}

export function VersionsNav({ message }: { message: string }) {
  const versions = useContext(VersionsOf);
  const box = useRef<HTMLFieldSetElement>(null);
  const of = versions?.at.get(message);
  useEffect(() => {
    const chosen = versions?.chosen.current;
    if (!versions || !of?.some(({ first, branch }) => first === chosen && !branch)) return;
    versions.chosen.current = undefined;
    box.current?.querySelector<HTMLElement>("button:enabled")?.focus();
  }, [of, versions]);
  if (!of) return null;
  const words = t().versions;
  const at = of.findIndex(({ branch }) => branch === undefined);
  const step = (to: Version | undefined, label: string, mark: string) => (
    <Action
      class="quiet"
      label={label}
      isOff={!to || !may("run")}
      onClick={async () => to && versions?.choose(to)}
    >
      {mark}
    </Action>
  );
  return (
    <fieldset class="versions" aria-label={words.versions} ref={box}>
      {step(of[at - 1], words.before, "‹")}
      <span>
        {at + 1}/{of.length}
      </span>
      {step(of[at + 1], words.next, "›")}
    </fieldset>
  );
}
