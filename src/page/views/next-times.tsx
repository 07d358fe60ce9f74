// The next times of a schedule, in the reader's time zone and in the schedule's time zone.

import { Empty } from "../components.tsx";
import { scheduleTexts } from "../texts/schedules.ts";
import { locale } from "../texts.ts";

const FORM: Intl.DateTimeFormatOptions = {
  ...{ weekday: "short", year: "numeric", month: "short", day: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit" },
};

/** Returns this browser's time zone. */
export const ownZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns `Mon, 4 May 2026, 09:30`, in this browser's time zone unless another one is given. */
export const shortTime = (time: string, timeZone?: string): string =>
  new Intl.DateTimeFormat(locale(), { ...FORM, ...(timeZone === undefined ? {} : { timeZone }) }).format(
    new Date(time),
  );

export function NextTimes({ times, timezone }: { times: readonly string[]; timezone: string }) {
  const words = scheduleTexts();
  if (times.length === 0) return <Empty>{words.noNext}</Empty>;
  const own = ownZone();
  const isOther = timezone !== own;
  return (
    <table class="runs" aria-label={words.next}>
      <thead>
        <tr>
          <th>{words.yourTime(own)}</th>
          {isOther && <th>{timezone}</th>}
        </tr>
      </thead>
      <tbody>
        {times.map((time) => (
          <tr key={time}>
            <td data-name={isOther ? words.yourTime(own) : undefined}>
              <time dateTime={time}>{shortTime(time)}</time>
            </td>
            {isOther && (
              <td data-name={timezone}>
                <time dateTime={time}>{shortTime(time, timezone)}</time>
              </td>
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
