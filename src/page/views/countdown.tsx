// The time that remains to answer a question.

import { useEffect, useReducer } from "preact/hooks";
import { Time } from "../components.tsx";
import { t } from "../texts.ts";

/** If less than this time remains, an open question counts down in seconds. */
const SOON_MS = 3_600_000;

export function Countdown({ at }: { at: string }) {
  const [, draw] = useReducer((count: number) => count + 1, 0);
  const left = Date.parse(at) - Date.now();
  const isSoon = left < SOON_MS;
  useEffect(() => {
    const timer = setInterval(() => draw(undefined), isSoon ? 1000 : 60_000);
    return () => clearInterval(timer);
  }, [isSoon]);
  if (left <= 0) return <span class="countdown">{t().question.over}</span>;
  return (
    <span class="countdown">
      {t().question.expires}{" "}
      {isSoon ? <time dateTime={at}>{t().question.expiresIn(clock(left))}</time> : <Time at={at} />}
    </span>
  );
}

/** `4:09`. */
const clock = (ms: number): string => {
  const seconds = Math.ceil(ms / 1000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
};
