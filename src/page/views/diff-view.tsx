// A diff as a table of lines. A sign in each line has the same meaning as its colour.

import { visible } from "../components.tsx";
import { type DiffLine, diffLines, hunksOf } from "../diff.ts";
import { number } from "../numbers.ts";
import { t } from "../texts.ts";
import { Exact } from "./exact-text.tsx";

const SIGNS = { same: " ", removed: "−", added: "+" } as const;

/** The maximum number of lines to show. A row takes several hundred bytes of memory. */
const MAX_LINES = 2000;

export function DiffView({
  before,
  after,
  numbers = true,
  isExact = false,
}: {
  before: string;
  after: string;
  numbers?: boolean;
  /**
   * True if a user must decide on the change. The diff is then shown completely, with invisible characters named. The
   * caller limits the lines.
   */
  isExact?: boolean;
}) {
  const hunks = hunksOf(diffLines(before, after));
  const count = hunks.reduce((sum, { length }) => sum + length, 0);
  if (count === 0) return <p class="empty">{t().diff.none}</p>;
  let left = isExact ? count : MAX_LINES;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: the section scrolls, so keyboard users must be able to focus it.
    <section class="diff" tabIndex={0} aria-label={t().diff.title}>
      {hunks.map((lines, index) => {
        const shown = lines.slice(0, Math.max(0, left));
        left -= shown.length;
        // biome-ignore lint/suspicious/noArrayIndexKey: hunks have no key other than their position.
        return <Hunk key={index} lines={shown} numbers={numbers} isExact={isExact} />;
      })}
      {!isExact && count > MAX_LINES && <p class="empty">{t().diff.moreLines(number(count - MAX_LINES))}</p>}
    </section>
  );
}

interface HunkProps {
  lines: readonly DiffLine[];
  numbers: boolean;
  isExact: boolean;
}

const Hunk = ({ lines, numbers, isExact }: HunkProps) => (
  <table>
    <tbody>
      {lines.map((line) => (
        <tr key={`${line.before}:${line.after}`} class={line.kind}>
          {numbers && <td class="number">{line.before}</td>}
          {numbers && <td class="number">{line.after}</td>}
          <td class="sign" aria-hidden="true">
            {SIGNS[line.kind]}
          </td>
          <td>
            {line.kind !== "same" && <span class="unseen">{t().diff[line.kind]}</span>}
            <code>{isExact ? <ExactLine {...line} /> : lineText(line)}</code>
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** Names a carriage return, unlike `lineText`. */
const ExactLine = ({ kind, text }: DiffLine) => (
  <>
    <Exact text={text.replace(/\n$/, "")} />
    {!text.endsWith("\n") && kind !== "same" && ` ⟨${t().diff.noLineEnd}⟩`}
  </>
);

function lineText({ kind, text }: DiffLine): string {
  const isEnded = text.endsWith("\n");
  const shown = visible(isEnded ? text.replace(/\r?\n$/, "") : text);
  return isEnded || kind === "same" ? shown : `${shown} ⟨${t().diff.noLineEnd}⟩`;
}
