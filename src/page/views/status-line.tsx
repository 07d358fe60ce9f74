// The current activity in one line, which screen readers announce.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ThreadView } from "../../client/cells.ts";
import { outcomeOf } from "../../client/outcome.ts";
import { Action, visible } from "../components.tsx";
import { useTouched } from "../frame.ts";
import type { LiveThread } from "../live.ts";
import { number } from "../numbers.ts";
import { ENDED_WELL } from "../outcome-marks.ts";
import { stopRun } from "../run-commands.ts";
import { may } from "../session.ts";
import { t } from "../texts.ts";
import { WaitingMessages } from "./waiting.tsx";

export function StatusLine({ thread, live }: { thread: string; live: LiveThread }) {
  const { connection } = useTouched(live);
  const run = useTouched(live.page.run);
  const { asks } = useTouched(live.page);
  const wasActive = useRef(false);
  wasActive.current ||= run.isActive;
  const words = t().statusLine;
  const isLost = connection === "reconnecting";
  const isStopping = run.isActive && run.id !== undefined && live.stopping === run.id;
  // The conversation already shows a note about this, so the line is only announced to screen readers.
  const isNoted =
    !isLost &&
    !run.isActive &&
    asks.length === 0 &&
    run.ending &&
    !ENDED_WELL.has(outcomeOf(run.ending, false));
  const text = isLost
    ? words.lost
    : isStopping
      ? words.stopping
      : textOf(live.page, asks.length, wasActive.current);
  return (
    <div class="status-line">
      <p class={isLost ? "lost" : run.isActive ? "active" : asks.length > 0 ? "asking" : ""}>
        <span role="status" class={isNoted ? "unseen" : undefined}>
          {text}
        </span>
        {isStopping && !isLost && may("run") && (
          <Action class="quiet" onClick={() => stopRun(thread, live, "cancel")}>
            {words.stopNow}
          </Action>
        )}
        {!isLost && !isStopping && run.isActive && run.phase.name === "calling_model" && (
          <Clock page={live.page} />
        )}
      </p>
      <WaitingMessages thread={thread} live={live} />
    </div>
  );
}

function textOf({ run }: ThreadView, asks: number, wasActive: boolean): string {
  const words = t().statusLine;
  if (run.isActive)
    return words.phases[run.phase.name](visible(run.phase.of?.join(", ") ?? "")) || words.phases.processing();
  if (asks > 0) return words.waits;
  if (!run.ending) return "";
  const outcome = outcomeOf(run.ending, false);
  return wasActive || !ENDED_WELL.has(outcome) ? t().outcomes[outcome] : "";
}

/** The number of seconds without output from the model after which the status line says so. */
const SILENT_S = 20;

/** The seconds since the model was called. Screen readers announce the phase but not every second. */
function Clock({ page }: { page: ThreadView }) {
  const { cells } = useTouched(page.lane);
  const [seconds, setSeconds] = useState(0);
  const before = useRef(cells.length);
  useEffect(() => {
    const since = performance.now();
    const tick = () => setSeconds(Math.floor((performance.now() - since) / 1000));
    const timer = setInterval(tick, 1000);
    return () => clearInterval(timer);
  }, []);
  const isSilent = cells.length <= before.current && seconds >= SILENT_S;
  return (
    <>
      {seconds > 0 && <span aria-hidden="true">{` · ${number(seconds)} s`}</span>}
      {isSilent && <span role="status">{` · ${t().statusLine.silent}`}</span>}
    </>
  );
}
