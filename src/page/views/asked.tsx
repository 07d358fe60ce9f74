// The arguments of a call that waits for approval, shown completely.

import { createContext } from "preact";
import { useCallback, useContext, useEffect, useRef, useState } from "preact/hooks";
import type { Interrupt } from "../../client/client.ts";
import { visible } from "../components.tsx";
import { fileCallOf } from "../file-calls.ts";
import { lazy } from "../lazy.tsx";
import { t } from "../texts.ts";
import { Exact } from "./exact-text.tsx";

const AskedChange = lazy(async () => (await import("./asked-change.tsx")).AskedChange);

/** The id of the thread that asks. */
export const AskedIn = createContext<string | undefined>(undefined);

export interface CallArgumentsProps {
  readonly args: Readonly<Record<string, unknown>>;
  /** The requested approval. A file change is shown as a diff. */
  readonly ask?: Interrupt;
  /** Called when the end of the arguments has been visible. */
  readonly onSeen: () => void;
  /** Called if the box cannot show everything, so the user must scroll. */
  readonly onCut?: (() => void) | undefined;
}

export function CallArguments({ args, ask, onSeen, onCut }: CallArgumentsProps) {
  const thread = useContext(AskedIn);
  const call = ask && fileCallOf(ask.name, args);
  const [isPlain, setPlain] = useState(call === undefined);
  const [hasChange, setHasChange] = useState(call !== undefined);
  const onNone = useCallback(() => {
    setPlain(true);
    setHasChange(false);
  }, []);
  const words = t().asked;
  const end = <End onSeen={onSeen} onCut={onCut} />;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: who has no mouse scrolls it too. */}
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset holds controls. */}
      <div class="asked" role="group" tabIndex={0} aria-label={isPlain ? words.args : words.change}>
        {call && !isPlain ? (
          <AskedChange call={call} thread={ask?.asked_by ? undefined : thread} onNone={onNone}>
            {end}
          </AskedChange>
        ) : (
          <>
            <Arguments args={args} />
            {end}
          </>
        )}
      </div>
      {hasChange && (
        <button type="button" class="quiet" onClick={() => setPlain(!isPlain)}>
          {isPlain ? words.showChange : words.showArgs}
        </button>
      )}
    </>
  );
}

function End({ onSeen, onCut }: Pick<CallArgumentsProps, "onSeen" | "onCut">) {
  const end = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const watcher = new IntersectionObserver((entries) => {
      if (entries.some(({ isIntersecting }) => isIntersecting)) return onSeen();
      const box = end.current?.closest(".asked");
      if (box && box.scrollHeight > box.clientHeight) onCut?.();
    });
    if (end.current) watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [onSeen, onCut]);
  return <span ref={end} class="end" />;
}

const Arguments = ({ args }: Pick<CallArgumentsProps, "args">) => (
  <>
    <dl>
      {Object.entries(args).map(([name, value]) => (
        <div key={name} class={isLong(value) ? "long" : ""}>
          <dt>{visible(name)}</dt>
          <dd>
            <Exact text={textOf(value)} />
          </dd>
        </div>
      ))}
    </dl>
    {Object.keys(args).length === 0 && <p class="empty">{t().asked.none}</p>}
  </>
);

const textOf = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

const isLong = (value: unknown) => typeof value === "object" || String(value).length > 40;
